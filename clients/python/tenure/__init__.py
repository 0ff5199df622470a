"""Leader election through an agent of Tenure on the same machine (docs/agent.md).

    from tenure import Agent

    with Agent("unix:/run/tenure/agent.sock").campaign("billing") as campaign:
        for term in campaign.terms():           # waits until this program leads
            while term.may_act(needs=1.0):      # sends heartbeats, too
                do_one_step(token=term.token)   # takes less than 1 s

The heartbeats come from these calls alone, never from a thread. So a program that hangs loses
leadership. Call may_act at least every third of the interval of heartbeats, which is a third of
the lease unless campaign says otherwise.

A campaign is for one thread.
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import time
import urllib.parse
from typing import Any, Dict, Iterator, NamedTuple, Optional

__all__ = ["Agent", "Campaign", "Term", "AgentError", "Over"]


class AgentError(Exception):
    """The agent refused a request. It has the status and the answer's fields."""

    def __init__(self, status: int, problem: Dict[str, Any]):
        self.status, self.problem = status, problem
        parts = [problem.get("title"), problem.get("detail"), problem.get("remedy")]
        super().__init__(": ".join(p for p in parts if p) or f"status {status}")


class Over(Exception):
    """The campaign is over: a heartbeat was missing, or the agent is gone."""


class _Instant(NamedTuple):
    """A reading of the clocks, in seconds."""

    mono: float
    raw: float
    boot: float

    def since(self, earlier: "_Instant") -> float:
        """The longest time that can have passed: the time awake by either clock, and the time
        asleep, by which boot ran ahead of mono."""
        awake = max(self.mono - earlier.mono, self.raw - earlier.raw)
        asleep = (self.boot - earlier.boot) - (self.mono - earlier.mono)
        return awake + max(0.0, asleep)


# Where no clock goes on while the machine sleeps, each act needs an answer of its own.
_SEES_SLEEP = hasattr(time, "CLOCK_BOOTTIME") and hasattr(time, "CLOCK_MONOTONIC_RAW")


def _now() -> _Instant:
    if not _SEES_SLEEP:
        return _Instant(time.monotonic(), time.monotonic(), time.monotonic())
    read = time.clock_gettime
    return _Instant(read(time.CLOCK_MONOTONIC), read(time.CLOCK_MONOTONIC_RAW), read(time.CLOCK_BOOTTIME))


class Agent:
    """An agent at unix:PATH, or at http://HOST:PORT on loopback, with the token of its
    --listen-token-file if it has one. A request takes at most timeout seconds."""

    def __init__(self, address: str = "unix:/run/tenure/agent.sock", *, token: Optional[str] = None, timeout: float = 2.0):
        self.address, self.timeout = address, timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def campaign(self, election: str, **settings: Any) -> "Campaign":
        """Takes part in an election. The settings are those of docs/agent.md, such as id="node-1",
        heartbeatMillis=2000 and leaseMillis=15000. Use the result in a with statement."""
        return Campaign(self, election, settings)

    def _connect(self) -> socket.socket:
        if self.address.startswith("unix:"):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.settimeout(self.timeout)
            try:
                s.connect(self.address[len("unix:"):])
            except OSError:
                s.close()
                raise
            return s
        host, _, port = self.address.split("://", 1)[-1].rstrip("/").rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), timeout=self.timeout)


class _Connection(http.client.HTTPConnection):
    def __init__(self, agent: Agent):
        super().__init__("localhost", timeout=agent.timeout)
        self._agent = agent

    def connect(self) -> None:
        self.sock = self._agent._connect()


class Campaign:
    """One candidate. Leaving the with statement reports that the work has ended, and the lease is
    released."""

    def __init__(self, agent: Agent, election: str, settings: Dict[str, Any]):
        self._agent, self._election, self._settings = agent, election, settings
        self._stream: Optional[socket.socket] = None
        self._requests: Optional[_Connection] = None
        self._path, self._lines, self._number = "", b"", 0
        self._interval = 0.0
        # what the last heartbeat granted
        self._sent = _now()
        self._token, self._remaining, self._finish = 0, 0.0, False

    def __enter__(self) -> "Campaign":
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def terms(self) -> Iterator["Term"]:
        """Waits until this program leads, again and again. The work of a term has ended when the
        next one is asked for. If a campaign is over, another one begins; an agent that is gone is
        awaited."""
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

    def _begin_again(self) -> None:
        """Begins another campaign, after a pause. It fails if the agent is away, shuts down, or has
        not noticed yet that the last campaign has lost its stream."""
        self._drop()
        time.sleep(1.0)
        try:
            self._begin()
        except OSError:
            pass
        except AgentError as e:
            if e.status not in (409, 503):
                raise

    def leave(self) -> None:
        """Reports that the work has ended, and ends the campaign."""
        if self._stream is not None:
            try:
                self._ask("DELETE", "", None)
            except (OSError, AgentError, Over):
                pass
        self._drop()

    def hand_over(self, to: str = "") -> None:
        """Asks this leader to hand over, to a candidate of this id if one is given."""
        self._ask("POST", "/hand-over", {"to": to} if to else {})

    def set_eligible(self, eligible: bool) -> None:
        """Says whether this program is fit to lead."""
        self._ask("PUT", "/eligible", {"eligible": eligible})

    def _begin(self) -> None:
        self._drop()
        self._number, self._token, self._remaining = 0, 0, 0.0
        body = json.dumps(self._settings)
        # with HTTP/1.0 the stream has no chunks
        elections = "/v1/elections/" + urllib.parse.quote(self._election, safe="")
        lines = [f"POST {elections}/campaign HTTP/1.0", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in self._agent._headers.items()]
        self._stream, self._lines = self._agent._connect(), b""
        self._stream.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
        self._sent = _now()
        status = int(self._line().split()[1])
        while self._line():
            pass
        if status != 200:
            rest = self._lines
            while chunk := self._stream.recv(4096):
                rest += chunk
            self._drop()
            raise AgentError(status, _object(rest))
        first = self._event()
        self._interval = first["heartbeatMillis"] / 1000
        self._path = f"{elections}/campaigns/{first['campaign']}"

    def _drop(self) -> None:
        for connection in (self._stream, self._requests):
            if connection is not None:
                connection.close()
        self._stream = self._requests = None

    def _line(self) -> bytes:
        """The next line of the stream, without its end."""
        assert self._stream is not None
        while b"\n" not in self._lines:
            chunk = self._stream.recv(4096)
            if not chunk:
                raise Over("the agent has ended the stream")
            self._lines += chunk
        line, _, self._lines = self._lines.partition(b"\n")
        return line.rstrip(b"\r")

    def _event(self) -> Dict[str, Any]:
        """The data of the next event."""
        while True:
            line = self._line()
            if line.startswith(b"data: "):
                return json.loads(line[len(b"data: "):])

    def _await_election(self) -> None:
        """Sends heartbeats until an answer shows that this program leads."""
        if self._stream is None:
            raise Over("there is no campaign")
        while True:
            self._beat()
            if self._token and not self._finish:
                return
            # an event only says when to ask: it may be old
            ready, _, _ = select.select([self._stream], [], [], self._interval / 3)
            while ready or b"\ndata: " in self._lines:
                self._event()
                ready, _, _ = select.select([self._stream], [], [], 0)

    def _beat(self) -> None:
        """Sends a heartbeat, with a number of its own, and notes what its answer grants."""
        self._number += 1
        sent = _now()
        standing = self._ask("POST", "/heartbeat", {"number": self._number})
        self._sent, self._remaining = sent, standing["remainingMillis"] / 1000
        self._token, self._finish = standing.get("token", 0), standing.get("finish", False)

    def _left(self) -> float:
        """How long this program may act: counted from before the last question, with 1 % for the
        drift between two readings of the clocks."""
        return self._remaining - 1.01 * _now().since(self._sent)

    def _ask(self, method: str, path: str, body: Optional[Dict[str, Any]]) -> Dict[str, Any]:
        if self._requests is None:
            self._requests = _Connection(self._agent)
        try:
            text = None if body is None else json.dumps(body)
            self._requests.request(method, self._path + path, body=text, headers=self._agent._headers)
            answer = self._requests.getresponse()
            data = _object(answer.read())
        except (OSError, http.client.HTTPException) as e:
            self._requests.close()
            self._requests = None
            raise OSError(f"the agent does not answer: {e}") from e
        if answer.status == 410:
            raise Over(data.get("detail", ""))
        if answer.status >= 300:
            raise AgentError(answer.status, data)
        return data


class Term:
    """A term of leadership. Pass its token to the resource with each write."""

    def __init__(self, campaign: Campaign, token: int):
        self._campaign, self._open = campaign, True
        self.token = token
        """Higher in every later term of the election."""

    def may_act(self, needs: float = 0.0) -> bool:
        """Whether this program may act now, for needs seconds. It sends a heartbeat if one is due.
        False means to stop: the term is lost, or the program is asked to finish."""
        c = self._campaign
        if not self._open:
            return False
        if not _SEES_SLEEP or _now().since(c._sent) >= c._interval / 3:
            try:
                c._beat()
            except Over:
                self._open = False
            except OSError:  # what was granted before still holds
                self._open = _SEES_SLEEP
        if c._token != self.token:
            self._open = False
        return self._open and not c._finish and c._left() > needs

    def finished(self) -> None:
        """Reports that the work has ended: the lease is released. The loop over terms calls it."""
        c = self._campaign
        if c._token != self.token:
            return
        self._open, c._token, c._remaining = False, 0, 0.0
        try:
            c._ask("POST", "/finished", {"token": self.token})
        except (OSError, AgentError, Over):
            pass  # the lease runs out


def _object(text: bytes) -> Dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = {"detail": text.decode(errors="replace")}
    return value if isinstance(value, dict) else {}
