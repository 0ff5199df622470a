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
import contextlib
from typing import Any, Awaitable, Callable, Dict, Optional, TypeVar

from ._shared import (
    FAILURES,
    PAUSE,
    AgentAddress,
    AgentError,
    Candidate,
    Events,
    Over,
    TermState,
    now,
    parse_answer,
    retried_later,
)

__all__ = ["Agent", "Campaign", "Term", "AgentError", "Over"]

T = TypeVar("T")


class Agent(AgentAddress):
    __doc__ = AgentAddress.__doc__

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
    """A connection that sends one request and passes on each part of the answer."""

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
        """Waits until data has arrived since the last wait, or the connection has ended."""
        await self._news.wait()
        if not self.ended:
            self._news.clear()

    async def wait_for(self, seconds: float) -> None:
        """Does the same, for at most so many seconds."""
        try:
            await asyncio.wait_for(self.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Campaign(Candidate):
    """One candidate. The end of the async with statement reports that the work has ended, which
    releases the lease."""

    _stream: Optional[_Stream]

    def __init__(self, agent: Agent, election: str, settings: Dict[str, Any]):
        super().__init__(agent, election, settings)
        self._agent = agent
        self._one_beat = asyncio.Lock()

    async def __aenter__(self) -> "Campaign":
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()

    def terms(self) -> "_Terms":
        """Yields a term each time when this program leads. The loop asks for the next term when the
        work of this one has ended. After a break, call Term.finished or leave the campaign. If a
        campaign is over, another one begins. The loop waits for an agent that is gone."""
        return _Terms(self)

    async def leave(self) -> None:
        """Reports that the work has ended, and ends the campaign."""
        try:
            if self._stream is not None:
                await self._tell(self._leave_request())
        finally:
            self._drop()

    async def hand_over(self, to: str = "") -> None:
        """Asks this leader to hand over to the candidate with this id, or to any if it is empty."""
        await self._ask(self._hand_over_request(to))

    async def set_eligible(self, eligible: bool) -> None:
        """Sets whether this program is fit to lead. Later campaigns of this object keep the value,
        even if this call raises an error."""
        self._eligible = eligible
        if self._stream is not None:  # otherwise the next campaign says it
            await self._ask(self._eligible_request())

    async def _begin(self) -> None:
        self._drop()
        events = Events()

        async def first(stream: _Stream) -> Dict[str, Any]:
            await self._agent._connect(stream)
            while events.first is None:
                if stream.ended:
                    events.raise_end()
                await stream.wait()
            return events.first

        stream = _Stream(self._begin_request(), events.feed)
        try:
            self._begun(await self._in_time(first(stream)))
            told = True  # a campaign begins eligible
            while told != self._eligible:
                told = self._eligible
                await self._ask(self._eligible_request())
        except BaseException:
            stream.close()
            raise
        self._stream = stream

    async def _begin_again(self) -> None:
        """Begins another campaign, after a pause."""
        self._drop()
        await asyncio.sleep(PAUSE)
        with retried_later():
            await self._begin()

    async def _elected(self) -> int:
        """Sends heartbeats until an answer shows that this program leads. It returns the token."""
        while True:
            try:
                await self._beat()
                if self._leads():
                    return self._token
                if self._token:  # no work of this token goes on
                    await self._tell(self._finished_request(self._token))
                if self._stream is not None:
                    await self._stream.wait_for(self._interval / 3)
            except (Over, OSError):
                await self._begin_again()

    async def _beat(self) -> None:
        """Sends a heartbeat, and keeps the time that its answer grants."""
        async with self._one_beat:
            if self._stream is None or self._stream.ended:
                raise Over("the agent has ended the stream")
            sent = now()
            self._granted(sent, await self._ask(self._heartbeat_request()))

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
        return parse_answer(bytes(text))

    async def _in_time(self, answered: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(answered, self._agent.timeout)
        except asyncio.TimeoutError:
            raise OSError(f"the agent does not answer in {self._agent.timeout} s") from None

    async def _tell(self, request: bytes) -> None:
        """Sends a report. If it fails, the lease runs out."""
        with contextlib.suppress(*FAILURES):
            await self._ask(request)


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


class Term(TermState):
    __doc__ = TermState.__doc__

    def __init__(self, campaign: Campaign, token: int):
        super().__init__(campaign, token)
        self._campaign = campaign

    async def may_act(self, needs: float = 0.0) -> bool:
        """Returns whether this program may act now, for needs seconds. It sends a heartbeat if one
        is due. False means to stop: the term is lost, too little time is left, or the program must
        finish."""
        if self._open and self._campaign._heartbeat_due():
            try:
                await self._campaign._beat()
            except (Over, OSError) as e:
                self._heartbeat_failed(e)
        return self._may_act(needs)

    async def finished(self) -> None:
        """Reports that the work has ended, which releases the lease. The loop over terms calls
        it."""
        if self._close():
            await self._campaign._tell(self._campaign._finished_request(self.token))
