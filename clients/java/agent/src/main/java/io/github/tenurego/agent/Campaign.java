package io.github.tenurego.agent;

import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;

/**
 * One candidate, for one thread. Heartbeats come from calls of {@link #awaitTerm} and
 * {@link Term#mayAct} alone, never from a thread or timer. So a program that hangs loses
 * leadership.
 */
public final class Campaign implements AutoCloseable {
  private final Agent agent;
  private final String elections;
  private final Settings settings;
  private Connection stream;
  private Connection requests;
  private String path;
  private long number;
  private Duration interval;
  private Term open;

  /** What the last heartbeat granted. */
  private long sentNanos;
  private long sentWall;
  private long remainingMillis;
  private long token;
  private boolean finish;

  Campaign(Agent agent, String election, Settings settings) throws IOException {
    this.agent = agent;
    this.settings = settings;
    elections = "/v1/elections/" + URLEncoder.encode(election, StandardCharsets.UTF_8).replace("+", "%20");
    begin();
  }

  /**
   * Waits until this program leads. The work of the term before has ended. If the campaign is over,
   * because a heartbeat was missing or the agent is gone, another campaign begins; an agent that is
   * gone is awaited.
   *
   * @throws AgentException if the agent refuses another campaign
   * @throws InterruptedException if the thread is interrupted; the campaign goes on
   */
  public Term awaitTerm() throws AgentException, InterruptedException {
    while (true) {
      try {
        return awaitTerm(Duration.ofNanos(Long.MAX_VALUE / 4));
      } catch (AgentException e) {
        if (e.status() != 410) {
          throw e;
        }
      } catch (InterruptedIOException e) {
        if (Thread.interrupted()) {
          throw new InterruptedException();
        }
      } catch (IOException e) {
        // the agent is gone
      }
      beginAgain();
    }
  }

  /**
   * Waits until this program leads, for at most a time. The work of the term before has ended.
   *
   * @return the term, or null if the time has passed
   * @throws AgentException with the status 410 if the campaign is over
   * @throws IOException if the agent is gone
   */
  public Term awaitTerm(Duration atMost) throws IOException {
    if (open != null) {
      open.finished();
    }
    if (stream == null) {
      throw new EOFException("there is no campaign");
    }
    long until = System.nanoTime() + atMost.toNanos();
    while (true) {
      beat();
      if (token != 0 && !finish) {
        open = new Term(this, token);
        return open;
      }
      long now = System.nanoTime();
      if (until - now <= 0) {
        return null;
      }
      // an event only says when to ask: it may be old
      boolean more = stream.readable(now + Math.min(interval.toNanos() / 3, until - now));
      for (; more; more = stream.readable(System.nanoTime())) {
        event();
      }
    }
  }

  /** Asks this leader to hand over, to a candidate of this id unless it is empty. */
  public void handOver(String to) throws IOException {
    ask("POST", "/hand-over", to.isEmpty() ? Map.of() : Map.of("to", to));
  }

  /** Says whether this program is fit to lead. */
  public void setEligible(boolean eligible) throws IOException {
    ask("PUT", "/eligible", Map.of("eligible", eligible));
  }

  /** Reports that the work has ended, and ends the campaign: the lease is released. */
  @Override
  public void close() {
    if (stream != null) {
      report("DELETE", "", Map.of());
    }
    abandon();
  }

  /** Ends the campaign without a report that the work has ended: the lease runs out. */
  public void abandon() {
    token = 0;
    open = null;
    for (Connection c : new Connection[] {stream, requests}) {
      if (c != null) {
        c.close();
      }
    }
    stream = null;
    requests = null;
  }

  private void begin() throws IOException {
    abandon();
    number = 0;
    stream = new Connection(agent);
    try {
      var answer = stream.ask("POST", elections + "/campaign", settings.json(), true);
      if (answer.status() != 200) {
        throw new AgentException(answer.status(), answer.body());
      }
      Map<String, Object> first = event();
      interval = Duration.ofMillis(whole(first, "heartbeatMillis"));
      path = elections + "/campaigns/" + first.get("campaign");
    } catch (IOException | RuntimeException e) {
      abandon();
      throw e;
    }
  }

  /**
   * Begins another campaign, after a pause. It fails if the agent is away, shuts down, or has not
   * noticed yet that the last campaign has lost its stream.
   */
  private void beginAgain() throws AgentException, InterruptedException {
    abandon();
    Thread.sleep(1000);
    try {
      begin();
    } catch (AgentException e) {
      if (e.status() != 409 && e.status() != 503) {
        throw e;
      }
    } catch (IOException e) {
      // it is still away
    }
  }

  /** Reads the data of the next event. */
  private Map<String, Object> event() throws IOException {
    long until = System.nanoTime() + agent.timeout().toNanos();
    while (true) {
      String line = stream.line(until);
      if (line.startsWith("data: ")) {
        return Json.read(line.substring("data: ".length()));
      }
      if (line.isEmpty() && !stream.readable(System.nanoTime())) {
        return Map.of(); // it was a comment, or the end of an event
      }
    }
  }

  /** Sends a heartbeat, with a number of its own, and notes what its answer grants. */
  void beat() throws IOException {
    long nanos = System.nanoTime();
    long wall = System.currentTimeMillis();
    Map<String, Object> standing = ask("POST", "/heartbeat", Map.of("number", ++number));
    sentNanos = nanos;
    sentWall = wall;
    remainingMillis = whole(standing, "remainingMillis");
    token = whole(standing, "token");
    finish = Boolean.TRUE.equals(standing.get("finish"));
  }

  /**
   * Returns the milliseconds that are left, counted from before the last question, with 1 % for the
   * drift between two clocks. System.nanoTime stands still while the machine sleeps, so a sleep
   * between question and answer only shows in the time of day.
   */
  double left() {
    double nanos = (System.nanoTime() - sentNanos) / 1e6;
    return remainingMillis - 1.01 * Math.max(nanos, System.currentTimeMillis() - sentWall);
  }

  boolean leads(long wanted) {
    return token == wanted;
  }

  boolean asksToFinish() {
    return finish;
  }

  /** Reports that the work of a term has ended. */
  void finished(long ended) {
    open = null;
    if (token == ended) {
      token = 0;
      report("POST", "/finished", Map.of("token", ended));
    }
  }

  /** Sends a report, also from an interrupted thread. If it gets lost, the lease runs out. */
  private void report(String method, String at, Map<String, Object> body) {
    boolean interrupted = Thread.interrupted();
    try {
      ask(method, at, body);
    } catch (IOException e) {
      // the lease runs out
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private Map<String, Object> ask(String method, String at, Map<String, Object> body) throws IOException {
    if (stream == null) {
      throw new EOFException("there is no campaign");
    }
    if (requests == null) {
      requests = new Connection(agent);
    }
    Connection.Answer answer = null;
    try {
      answer = requests.ask(method, path + at, Json.write(body), false);
    } finally {
      if (answer == null || !requests.reusable()) {
        requests.close();
        requests = null;
      }
    }
    if (answer.status() >= 300) {
      throw new AgentException(answer.status(), answer.body());
    }
    return answer.body();
  }

  private static long whole(Map<String, Object> object, String name) {
    return object.get(name) instanceof Long n ? n : 0;
  }
}
