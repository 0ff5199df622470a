"""The part that the clients with and without asyncio share: the clocks, the requests and answers,
and how long a program may act. It opens no connection."""

from __future__ import annotations

import json
import time
import urllib.parse
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Tuple, Union


class AgentError(Exception):
    """The agent refused a request. It has the status and the answer's fields."""

    def __init__(self, status: int, problem: Dict[str, Any]):
        self.status, self.problem = status, problem
        self.title: str = problem.get("title", "")
        self.detail: str = problem.get("detail", "")
        self.remedy: str = problem.get("remedy", "")
        self.errors: List[str] = problem.get("errors", [])
        """The fields at fault."""
        super().__init__(": ".join(p for p in (self.title, self.detail, self.remedy) if p) or f"status {status}")


class Over(Exception):
    """The campaign is over: a heartbeat was missing, or the agent is gone."""


class Instant(NamedTuple):
    """A reading of the clocks, in seconds."""

    mono: float
    raw: float
    boot: float

    def since(self, earlier: "Instant") -> float:
        """The longest time that can have passed: the time awake by either clock, and the time
        asleep, by which boot ran ahead of mono."""
        awake = max(self.mono - earlier.mono, self.raw - earlier.raw)
        asleep = (self.boot - earlier.boot) - (self.mono - earlier.mono)
        return awake + max(0.0, asleep)


# Where no clock goes on while the machine sleeps, each act needs an answer of its own.
SEES_SLEEP = hasattr(time, "CLOCK_BOOTTIME") and hasattr(time, "CLOCK_MONOTONIC_RAW")


def now() -> Instant:
    if not SEES_SLEEP:
        return Instant(time.monotonic(), time.monotonic(), time.monotonic())
    read = time.clock_gettime
    return Instant(read(time.CLOCK_MONOTONIC), read(time.CLOCK_MONOTONIC_RAW), read(time.CLOCK_BOOTTIME))


class Place:
    """The address of an agent: unix:PATH, or http://HOST:PORT on loopback, with the token of its
    --listen-token-file if it has one. A request takes at most timeout seconds."""

    def __init__(self, address: str = "unix:/run/tenure/agent.sock", *, token: Optional[str] = None, timeout: float = 2.0):
        if token is not None and not token.isprintable():
            raise ValueError("the token has characters that cannot be printed: remove them, such as the end of the line")
        self.address, self.timeout = address, timeout
        self._headers = f"Authorization: Bearer {token}\r\n" if token else ""

    def _target(self) -> Union[str, Tuple[str, int]]:
        """The path of a socket, or a host and a port."""
        if self.address.startswith("unix:"):
            return self.address[len("unix:"):]
        host, _, port = self.address.split("://", 1)[-1].rstrip("/").rpartition(":")
        return host.strip("[]"), int(port)

    def _request(self, method: str, path: str, body: Optional[Dict[str, Any]]) -> bytes:
        """A request. With HTTP/1.0, the answer ends with the connection and a stream has no
        chunks."""
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.0\r\nHost: localhost\r\n{self._headers}Content-Length: {len(text)}\r\n\r\n"
        return head.encode() + text


def answer(text: bytes) -> Dict[str, Any]:
    """The fields of a whole answer, or its error."""
    head, end, body = text.partition(b"\r\n\r\n")
    fields = {name: value for name, _, value in (line.partition(b": ") for line in head.lower().split(b"\r\n"))}
    if not end or len(body) < int(fields.get(b"content-length", b"0")):
        raise OSError("the agent does not answer to the end")
    status, value = int(head.split()[1]), _object(body)
    if status == 410:
        raise Over(value.get("detail", ""))
    if status >= 300:
        raise AgentError(status, value)
    return value


def _object(text: bytes) -> Dict[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = {"detail": text.decode(errors="replace")}
    return value if isinstance(value, dict) else {}


class Events:
    """Reads a stream of events. An event grants no time, since it may be old: only the first one
    counts, and the others say when to ask."""

    def __init__(self) -> None:
        self.first: Optional[Dict[str, Any]] = None
        self._text, self._status = b"", 0

    def feed(self, data: bytes) -> None:
        self._text += data
        if self._status == 0 and b"\r\n\r\n" in self._text:
            self._status = int(self._text.split(None, 2)[1])
        if self._status == 200:
            *lines, self._text = self._text.split(b"\n")
            if self.first is None:
                self.first = next((_object(line[6:]) for line in lines if line.startswith(b"data: ")), None)

    def end(self) -> NoReturn:
        """Raises the error of a stream that has ended."""
        if self._status > 200:
            answer(self._text)
        raise Over("the agent has ended the stream")


class Candidate:
    """The state of a campaign, and the time that the last heartbeat granted."""

    def __init__(self, place: Place, election: str, settings: Dict[str, Any]):
        self._place, self._settings = place, settings
        self._elections = "/v1/elections/" + urllib.parse.quote(election, safe="")
        # The last token whose work has ended. That report may arrive late, so it is never used again.
        self._ended = 0
        self._reset()

    def _reset(self) -> None:
        self._path, self._interval, self._number = "", 0.0, 0
        self._sent = now()
        self._token, self._remaining, self._finish = 0, 0.0, False

    def _beginning(self) -> bytes:
        """The request for a campaign."""
        return self._place._request("POST", self._elections + "/campaign", self._settings)

    def _begun(self, first: Dict[str, Any]) -> None:
        """Takes the first event."""
        self._interval = first["heartbeatMillis"] / 1000
        self._path = f"{self._elections}/campaigns/{first['campaign']}"

    def _of(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> bytes:
        """A request of this campaign."""
        return self._place._request(method, self._path + path, body)

    def _heartbeat(self) -> bytes:
        """A heartbeat, with a number of its own. The time counts from before this call."""
        self._number += 1
        return self._of("POST", "/heartbeat", {"number": self._number})

    def _report(self, token: int) -> bytes:
        """The report that the work of a term has ended."""
        self._ended = max(self._ended, token)
        return self._of("POST", "/finished", {"token": token})

    def _granted(self, sent: Instant, standing: Dict[str, Any]) -> None:
        """Takes the answer to a heartbeat, and the time before it was sent."""
        self._sent, self._remaining = sent, standing["remainingMillis"] / 1000
        self._token, self._finish = standing.get("token", 0), standing.get("finish", False)

    def _leads(self) -> bool:
        """Whether work can begin."""
        return self._token > self._ended and not self._finish

    def _due(self) -> bool:
        """Whether a heartbeat is due."""
        return not SEES_SLEEP or now().since(self._sent) >= self._interval / 3

    def _left(self) -> float:
        """How long this program may act: counted from before the last question, with 1 % for the
        drift between two readings of the clocks."""
        return self._remaining - 1.01 * now().since(self._sent)

    @staticmethod
    def _passes(error: Exception) -> bool:
        """Whether another campaign can begin later. The agent may be away, shut down, or not have
        noticed yet that the last campaign has lost its stream."""
        return isinstance(error, (OSError, Over)) or isinstance(error, AgentError) and error.status in (409, 503)


class Held:
    """A term of leadership. Pass its token to the resource with each write."""

    def __init__(self, candidate: Candidate, token: int):
        self._of, self._open = candidate, True
        self.token = token
        """Higher in every later term of the election."""

    def _failed(self, error: Exception) -> None:
        """A heartbeat was not answered."""
        if isinstance(error, Over) or not SEES_SLEEP:
            self._open = False  # otherwise the time that was granted before still holds

    def _may_act(self, needs: float) -> bool:
        c = self._of
        if c._token != self.token:
            self._open = False
        return self._open and not c._finish and c._left() > needs

    def _close(self) -> bool:
        """Ends the term. It returns whether the agent must be told."""
        c, self._open = self._of, False
        if c._token != self.token:
            return False
        c._token, c._remaining = 0, 0.0
        return True
