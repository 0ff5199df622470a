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
  private boolean eligible = true;
  /** The last token whose work has ended. A late report can still release its lease. */
  private long lastEnded;

  // The answer to the last heartbeat, and the clocks before it was sent.
  private long sentNanos;
  private long sentWall;
  private long remainingMillis;
  private long token;
  private boolean finish;

  Campaign(Agent agent, String election, Settings settings) throws IOException {
    this.agent = agent;
    this.settings = settings;
    String name = URLEncoder.encode(election, StandardCharsets.UTF_8).replace("+", "%20");
    elections = "/v1/elections/" + name;
    begin();
  }

  /**
   * Waits until this program leads. A call means that the work of the previous term has ended. If
   * the campaign is over, because a heartbeat was missing or the agent is gone, this method begins
   * another one. It waits for an agent that is gone.
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
   * Waits until this program leads, for at most {@code atMost}. A call means that the work of the
   * previous term has ended.
   *
   * @return the term, or null if {@code atMost} has passed
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
      if (token > lastEnded && !finish) {
        open = new Term(this, token);
        return open;
      }
      if (token != 0) {
        finished(token); // no work of this token goes on
      }
      long now = System.nanoTime();
      if (until - now <= 0) {
        return null;
      }
      // An event may be old, so it grants nothing: it only ends this pause.
      stream.readable(now + Math.min(interval.toNanos() / 3, until - now));
    }
  }

  /** Asks this leader to hand over to the candidate with this id, or to any if it is empty. */
  public void handOver(String to) throws IOException {
    ask("POST", "/hand-over", to.isEmpty() ? Map.of() : Map.of("to", to));
  }

  /**
   * Sets whether this program is fit to lead. Later campaigns of this object keep the value, even
   * if this method throws.
   */
  public void setEligible(boolean eligible) throws IOException {
    this.eligible = eligible;
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
      if (!eligible) {
        setEligible(false);
      }
    } catch (IOException | RuntimeException e) {
      abandon();
      throw e;
    }
  }

  /**
   * Begins another campaign, after a pause. The caller tries again if the agent is away (an
   * IOException), shuts down (503), has not noticed yet that the last campaign has lost its stream
   * (409), or has ended the new campaign (410).
   */
  private void beginAgain() throws AgentException, InterruptedException {
    abandon();
    Thread.sleep(1000);
    try {
      begin();
    } catch (AgentException e) {
      if (e.status() != 409 && e.status() != 410 && e.status() != 503) {
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

  /**
   * Reads the events that have arrived, and sends nothing. The agent ends the campaign of a client
   * that does not read for 10 seconds. So call this method every few seconds, from the thread that
   * uses the campaign or under a lock, if heartbeats are rare.
   *
   * @throws IOException if the stream of events fails
   */
  public void readEvents() throws IOException {
    while (stream != null && stream.readable(System.nanoTime())) {
      event();
    }
  }

  /** Sends a heartbeat, with a number of its own, and keeps the time that its answer grants. */
  void beat() throws IOException {
    readEvents();
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
   * Returns the milliseconds that are left, counted from before the last heartbeat was sent, with
   * 1 % for the drift between two clocks. System.nanoTime stands still while the machine sleeps, so
   * only the time of day shows a sleep between heartbeat and answer.
   */
  double millisLeft() {
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
    lastEnded = Math.max(lastEnded, ended);
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

  private Map<String, Object> ask(String method, String at, Map<String, Object> body)
      throws IOException {
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
