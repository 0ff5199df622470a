"""Code that the clients with and without asyncio share: the clocks, the requests and answers, and
how long a program may act. It opens no connection."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Tuple, Union

PAUSE = 1.0
"""The pause before another campaign, in seconds."""


class AgentError(Exception):
    """The agent refused a request. The error has the status and the fields of the answer."""

    def __init__(self, status: int, problem: Dict[str, Any]):
        self.status, self.problem = status, problem
        self.title: str = problem.get("title", "")
        self.detail: str = problem.get("detail", "")
        self.remedy: str = problem.get("remedy", "")
        self.errors: List[str] = problem.get("errors", [])
        """The fields at fault."""
        parts = filter(None, (self.title, self.detail, self.remedy))
        super().__init__(": ".join(parts) or f"status {status}")


class Over(Exception):
    """The campaign is over: a heartbeat was missing, or the stream of events has ended."""


FAILURES = (OSError, AgentError, Over)
"""The errors of a request."""


@contextlib.contextmanager
def retried_later() -> Iterator[None]:
    """Suppresses an error after which another campaign can begin. The agent is away, shuts down,
    has ended the new campaign, or has not noticed yet that the last one has lost its stream."""
    try:
        yield
    except (OSError, Over):
        pass
    except AgentError as e:
        if e.status not in (409, 503):
            raise


class Instant(NamedTuple):
    """A reading of the clocks CLOCK_MONOTONIC, _RAW and CLOCK_BOOTTIME, in seconds."""

    mono: float
    raw: float
    boot: float

    def since(self, earlier: "Instant") -> float:
        """The longest time that can have passed, in seconds. It is the time awake, by the faster of
        mono and raw, plus the time asleep, by which boot ran ahead of mono."""
        awake = max(self.mono - earlier.mono, self.raw - earlier.raw)
        asleep = (self.boot - earlier.boot) - (self.mono - earlier.mono)
        return awake + max(0.0, asleep)


# Whether a clock goes on while the machine sleeps. Without one, each act needs its own answer.
SEES_SLEEP = hasattr(time, "CLOCK_BOOTTIME") and hasattr(time, "CLOCK_MONOTONIC_RAW")


def now() -> Instant:
    if not SEES_SLEEP:
        return Instant(time.monotonic(), time.monotonic(), time.monotonic())
    read = time.clock_gettime
    mono, raw = read(time.CLOCK_MONOTONIC), read(time.CLOCK_MONOTONIC_RAW)
    return Instant(mono, raw, read(time.CLOCK_BOOTTIME))


class AgentAddress:
    """An agent at unix:PATH, or at http://HOST:PORT on loopback. The token is that of the agent's
    --listen-token-file, if it has one. The agent must answer within timeout seconds."""

    def __init__(
        self,
        address: str = "unix:/run/tenure/agent.sock",
        *,
        token: Optional[str] = None,
        timeout: float = 2.0,
    ):
        if token is not None and not token.isprintable():
            raise ValueError("the token has unprintable characters: remove them, such as a newline")
        self.address, self.timeout = address, timeout
        self._headers = f"Authorization: Bearer {token}\r\n" if token else ""

    def _target(self) -> Union[str, Tuple[str, int]]:
        """The path of a socket, or a host and a port."""
        if self.address.startswith("unix:"):
            return self.address[len("unix:"):]
        host, _, port = self.address.split("://", 1)[-1].rstrip("/").rpartition(":")
        return host.strip("[]"), int(port)

    def _request(self, method: str, path: str, body: Optional[Dict[str, Any]]) -> bytes:
        """The text of a request. With HTTP/1.0, an answer ends with the connection and has no
        chunks."""
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.0\r\nHost: localhost\r\n{self._headers}"
        return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text


def parse_answer(text: bytes) -> Dict[str, Any]:
    """Returns the fields of an answer, or raises its error."""
    head, end, body = text.partition(b"\r\n\r\n")
    headers = dict(line.partition(b": ")[::2] for line in head.lower().split(b"\r\n"))
    if not end or len(body) < int(headers.get(b"content-length", b"0")):
        raise OSError("the answer of the agent is incomplete")
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
    """Reads a stream of events. The first event names the campaign. The others are ignored: they
    may be old, so they grant no time."""

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
                events = (_object(line[6:]) for line in lines if line.startswith(b"data: "))
                self.first = next(events, None)

    def raise_end(self) -> NoReturn:
        """Raises the error of a stream that has ended."""
        if self._status > 200:
            parse_answer(self._text)
        raise Over("the agent has ended the stream")


class Candidate:
    """The state of a campaign, and the time that the last heartbeat granted."""

    _stream: Any  # has close()

    def __init__(self, agent: AgentAddress, election: str, settings: Dict[str, Any]):
        self._address, self._settings = agent, settings
        self._elections = "/v1/elections/" + urllib.parse.quote(election, safe="")
        self._stream = None
        self._eligible = True
        # The last token whose work has ended. A late report can still release its lease.
        self._last_ended = 0
        self._drop()

    def _drop(self) -> None:
        """Closes the stream, which ends the campaign, and forgets the campaign."""
        self._path, self._interval, self._number = "", 0.0, 0
        self._sent = now()
        self._token, self._remaining, self._finish = 0, 0.0, False
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _begun(self, first: Dict[str, Any]) -> None:
        """Takes the first event of a campaign."""
        self._interval = first["heartbeatMillis"] / 1000
        self._path = f"{self._elections}/campaigns/{first['campaign']}"

    def _request(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> bytes:
        """The text of a request about this campaign."""
        return self._address._request(method, self._path + path, body)

    def _begin_request(self) -> bytes:
        return self._address._request("POST", self._elections + "/campaign", self._settings)

    def _heartbeat_request(self) -> bytes:
        """A heartbeat, with a number of its own. The time that it grants counts from before this
        call."""
        self._number += 1
        return self._request("POST", "/heartbeat", {"number": self._number})

    def _finished_request(self, token: int) -> bytes:
        """The report that the work of a term has ended."""
        self._last_ended = max(self._last_ended, token)
        return self._request("POST", "/finished", {"token": token})

    def _eligible_request(self) -> bytes:
        return self._request("PUT", "/eligible", {"eligible": self._eligible})

    def _hand_over_request(self, to: str) -> bytes:
        return self._request("POST", "/hand-over", {"to": to} if to else {})

    def _leave_request(self) -> bytes:
        """The report that the work has ended and the campaign is over."""
        self._last_ended = max(self._last_ended, self._token)
        return self._request("DELETE", "")

    def _granted(self, sent: Instant, standing: Dict[str, Any]) -> None:
        """Takes the answer to a heartbeat, and the time before the heartbeat was sent."""
        self._sent, self._remaining = sent, standing["remainingMillis"] / 1000
        self._token, self._finish = standing.get("token", 0), standing.get("finish", False)

    def _leads(self) -> bool:
        """Whether work can begin."""
        return self._token > self._last_ended and not self._finish

    def _heartbeat_due(self) -> bool:
        return not SEES_SLEEP or now().since(self._sent) >= self._interval / 3

    def _seconds_left(self) -> float:
        """How long this program may act. The time counts from before the last heartbeat was sent,
        with 1 % for the drift between two readings of the clocks."""
        return self._remaining - 1.01 * now().since(self._sent)


class TermState:
    """A term of leadership. Pass its token to the resource with each write."""

    def __init__(self, candidate: Candidate, token: int):
        self._candidate, self._open = candidate, True
        self.token = token
        """The fencing token: higher in every later term of the election."""

    def _heartbeat_failed(self, error: Exception) -> None:
        # The time that an earlier answer granted still holds, if this program can count it.
        if isinstance(error, Over) or not SEES_SLEEP:
            self._open = False

    def _may_act(self, needs: float) -> bool:
        candidate = self._candidate
        if candidate._token != self.token or self.token <= candidate._last_ended:
            self._open = False
        return self._open and not candidate._finish and candidate._seconds_left() > needs

    def _close(self) -> bool:
        """Ends the term. Returns whether the agent must be told."""
        candidate, self._open = self._candidate, False
        if candidate._token != self.token:
            return False
        candidate._token, candidate._remaining = 0, 0.0
        return True
