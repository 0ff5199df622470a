"""Leader election through an agent of Tenure on the same machine, for asyncio (docs/agent.md).

    from tenure.aio import Agent

    async with Agent("unix:/run/tenure/agent.sock").campaign("billing") as campaign:
        async for term in campaign.terms():          # waits until this program leads
            while await term.may_act(needs=1.0):     # sends heartbeats, too
                await do_one_step(token=term.token)  # takes less than 1 s

The heartbeats come from these calls alone, never from a task of their own. So a program that hangs
loses leadership. Call may_act at least every third of the interval of heartbeats, which is a third
of the lease unless campaign says otherwise.
"""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Dict, Optional, TypeVar

from ._shared import AgentError, Candidate, Events, Held, Over, Place, answer, now

__all__ = ["Agent", "Campaign", "Term", "AgentError", "Over"]

T = TypeVar("T")


class Agent(Place):
    __doc__ = Place.__doc__

    def campaign(self, election: str, **settings: Any) -> "Campaign":
        """Takes part in an election. The settings are those of docs/agent.md, such as id="node-1",
        heartbeatMillis=2000 and leaseMillis=15000. Use the result in an async with statement."""
        return Campaign(self, election, settings)

    async def _connect(self, stream: "_Stream") -> None:
        loop, target = asyncio.get_running_loop(), self._target()
        if isinstance(target, tuple):
            await loop.create_connection(lambda: stream, *target)
        else:
            await loop.create_unix_connection(lambda: stream, target)


class _Stream(asyncio.Protocol):
    """A connection: it sends a request, and collects the answer."""

    def __init__(self, request: bytes, take: Callable[[bytes], object]):
        self._request, self._take = request, take
        self._transport: Optional[asyncio.Transport] = None
        self._news = asyncio.Event()
        self.ended = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._take(data)
        self._news.set()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self.ended = True
        self._news.set()

    async def wait(self) -> None:
        """Waits for data that has come since the last wait, or for the end."""
        await self._news.wait()
        if not self.ended:
            self._news.clear()

    async def wait_for(self, seconds: float) -> None:
        """Waits, for so long at most."""
        try:
            await asyncio.wait_for(self.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Campaign(Candidate):
    """One candidate. Leaving the async with statement reports that the work has ended, and the
    lease is released."""

    def __init__(self, agent: Agent, election: str, settings: Dict[str, Any]):
        super().__init__(agent, election, settings)
        self._agent = agent
        self._stream: Optional[_Stream] = None
        self._one_beat = asyncio.Lock()

    async def __aenter__(self) -> "Campaign":
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    def terms(self) -> "_Terms":
        """Waits until this program leads, again and again. The work of a term has ended when the
        next one is asked for. After a break it ends with Term.finished, or with the campaign. If a
        campaign is over, another one begins; an agent that is gone is awaited."""
        return _Terms(self)

    async def leave(self) -> None:
        """Reports that the work has ended, and ends the campaign."""
        try:
            if self._stream is not None:
                await self._tell(self._of("DELETE", ""))
        finally:
            self._drop()

    async def hand_over(self, to: str = "") -> None:
        """Asks this leader to hand over, to a candidate of this id if one is given."""
        await self._ask(self._of("POST", "/hand-over", {"to": to} if to else {}))

    async def set_eligible(self, eligible: bool) -> None:
        """Says whether this program is fit to lead."""
        await self._ask(self._of("PUT", "/eligible", {"eligible": eligible}))

    async def _begin(self) -> None:
        self._drop()
        events = Events()

        async def first(stream: _Stream) -> Dict[str, Any]:
            await self._agent._connect(stream)
            while events.first is None:
                if stream.ended:
                    events.end()
                await stream.wait()
            return events.first

        stream = _Stream(self._beginning(), events.feed)
        try:
            self._begun(await self._in_time(first(stream)))
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    async def _begin_again(self) -> None:
        """Begins another campaign, after a pause."""
        self._drop()
        await asyncio.sleep(1.0)
        try:
            await self._begin()
        except Exception as e:
            if not self._passes(e):
                raise

    def _drop(self) -> None:
        self._reset()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def _elected(self) -> int:
        """Sends heartbeats until an answer shows that this program leads. It returns the token."""
        while True:
            try:
                await self._beat()
                if self._leads():
                    return self._token
                if self._token:  # no work goes on
                    await self._tell(self._report(self._token))
                if self._stream is not None:
                    await self._stream.wait_for(self._interval / 3)
            except (Over, OSError):
                await self._begin_again()

    async def _beat(self) -> None:
        """Sends a heartbeat, and notes the time that its answer grants."""
        async with self._one_beat:
            if self._stream is None or self._stream.ended:
                raise Over("the agent has ended the stream")
            sent = now()
            self._granted(sent, await self._ask(self._heartbeat()))

    async def _ask(self, request: bytes) -> Dict[str, Any]:
        text = bytearray()
        stream = _Stream(request, text.extend)

        async def whole() -> None:
            await self._agent._connect(stream)
            while not stream.ended:
                await stream.wait()

        try:
            await self._in_time(whole())
        finally:
            stream.close()
        return answer(bytes(text))

    async def _in_time(self, answered: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(answered, self._agent.timeout)
        except asyncio.TimeoutError:
            raise OSError(f"the agent does not answer in {self._agent.timeout} s") from None

    async def _tell(self, request: bytes) -> None:
        """Sends a report. If it fails, the lease runs out."""
        try:
            await self._ask(request)
        except (OSError, AgentError, Over):
            pass


class _Terms:
    """The terms of a campaign, one after the other."""

    def __init__(self, campaign: Campaign):
        self._campaign = campaign
        self._last: Optional[Term] = None

    def __aiter__(self) -> "_Terms":
        return self

    async def __anext__(self) -> "Term":
        if self._last is not None:
            await self._last.finished()
        self._last = Term(self._campaign, await self._campaign._elected())
        return self._last


class Term(Held):
    __doc__ = Held.__doc__

    def __init__(self, campaign: Campaign, token: int):
        super().__init__(campaign, token)
        self._campaign = campaign

    async def may_act(self, needs: float = 0.0) -> bool:
        """Whether this program may act now, for needs seconds. It sends a heartbeat if one is due.
        False means to stop: the term is lost, or the program is asked to finish."""
        if self._open and self._campaign._due():
            try:
                await self._campaign._beat()
            except (Over, OSError) as e:
                self._failed(e)
        return self._may_act(needs)

    async def finished(self) -> None:
        """Reports that the work has ended: the lease is released. The loop over terms calls it."""
        if self._close():
            await self._campaign._tell(self._campaign._report(self.token))
