"""Leader election through an agent of Tenure on the same machine (docs/agent.md).

    from tenure import Agent

    with Agent("unix:/run/tenure/agent.sock").campaign("billing") as campaign:
        for term in campaign.terms():           # waits until this program leads
            while term.may_act(needs=1.0):      # sends heartbeats, too
                do_one_step(token=term.token)   # takes less than 1 s

The heartbeats come from these calls alone, never from a thread. So a program that hangs loses
leadership. Call may_act at least every third of the interval of heartbeats, which is a third of
the lease unless campaign says otherwise.

A campaign is for one thread. tenure.aio has the same for asyncio.
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any, Dict, Iterator, Optional

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


class Agent(AgentAddress):
    __doc__ = AgentAddress.__doc__

    def campaign(self, election: str, **settings: Any) -> "Campaign":
        """Takes part in an election. The settings are those of docs/agent.md, such as id="node-1",
        heartbeatMillis=2000 and leaseMillis=15000. Use the result in a with statement."""
        return Campaign(self, election, settings)

    def _connect(self) -> socket.socket:
        target = self._target()
        if isinstance(target, tuple):
            return socket.create_connection(target, timeout=self.timeout)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(self.timeout)
        try:
            s.connect(target)
        except OSError:
            s.close()
            raise
        return s


class Campaign(Candidate):
    """One candidate. The end of the with statement reports that the work has ended, which releases
    the lease."""

    _stream: Optional[socket.socket]

    def __init__(self, agent: Agent, election: str, settings: Dict[str, Any]):
        super().__init__(agent, election, settings)
        self._agent, self._events = agent, Events()

    def __enter__(self) -> "Campaign":
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def terms(self) -> Iterator["Term"]:
        """Yields a term each time when this program leads. The loop asks for the next term when the
        work of this one has ended. If a campaign is over, another one begins. The loop waits for an
        agent that is gone."""
        while True:
            try:
                self._await_election()
            except (Over, OSError):
                self._begin_again()
                continue
            term = Term(self, self._token)
            try:
                yield term
            finally:
                term.finished()

    def leave(self) -> None:
        """Reports that the work has ended, and ends the campaign."""
        if self._stream is not None:
            self._tell(self._leave_request())
        self._drop()

    def hand_over(self, to: str = "") -> None:
        """Asks this leader to hand over to the candidate with this id, or to any if it is empty."""
        self._ask(self._hand_over_request(to))

    def set_eligible(self, eligible: bool) -> None:
        """Sets whether this program is fit to lead. Later campaigns of this object keep the value,
        even if this call raises an error."""
        self._eligible = eligible
        self._ask(self._eligible_request())

    def _begin(self) -> None:
        self._drop()
        self._stream, self._events = self._agent._connect(), Events()
        try:
            self._stream.sendall(self._begin_request())
            while self._events.first is None:
                self._read()
            self._begun(self._events.first)
            if not self._eligible:
                self.set_eligible(False)
        except BaseException:
            self._drop()
            raise

    def _begin_again(self) -> None:
        """Begins another campaign, after a pause."""
        self._drop()
        time.sleep(PAUSE)
        with retried_later():
            self._begin()

    def _read(self) -> None:
        """Reads the next part of the stream."""
        if self._stream is None:
            raise Over("there is no campaign")
        chunk = self._stream.recv(4096)
        if not chunk:
            self._events.raise_end()
        self._events.feed(chunk)

    def _listen(self, seconds: float) -> None:
        """Waits for an event, and reads all events that have arrived. The agent gives up a client
        that does not read."""
        try:
            while True:
                if self._stream is not None:
                    self._stream.settimeout(seconds)
                self._read()
                seconds = 0.0
        except (BlockingIOError, socket.timeout):
            pass

    def _await_election(self) -> None:
        """Sends heartbeats until an answer shows that this program leads."""
        while True:
            self._beat()
            if self._leads():
                return
            if self._token:  # no work of this token goes on
                self._tell(self._finished_request(self._token))
            self._listen(self._interval / 3)

    def _beat(self) -> None:
        """Sends a heartbeat, and keeps the time that its answer grants."""
        self._listen(0.0)
        sent = now()
        self._granted(sent, self._ask(self._heartbeat_request()))

    def _ask(self, request: bytes) -> Dict[str, Any]:
        text = b""
        with self._agent._connect() as s:
            s.sendall(request)
            while chunk := s.recv(4096):
                text += chunk
        return parse_answer(text)

    def _tell(self, request: bytes) -> None:
        """Sends a report. If it fails, the lease runs out."""
        with contextlib.suppress(*FAILURES):
            self._ask(request)


class Term(TermState):
    __doc__ = TermState.__doc__

    def __init__(self, campaign: Campaign, token: int):
        super().__init__(campaign, token)
        self._campaign = campaign

    def may_act(self, needs: float = 0.0) -> bool:
        """Returns whether this program may act now, for needs seconds. It sends a heartbeat if one
        is due. False means to stop: the term is lost, too little time is left, or the program must
        finish."""
        if self._open and self._campaign._heartbeat_due():
            try:
                self._campaign._beat()
            except (Over, OSError) as e:
                self._heartbeat_failed(e)
        return self._may_act(needs)

    def finished(self) -> None:
        """Reports that the work has ended, which releases the lease. The loop over terms calls
        it."""
        if self._close():
            self._campaign._tell(self._campaign._finished_request(self.token))
