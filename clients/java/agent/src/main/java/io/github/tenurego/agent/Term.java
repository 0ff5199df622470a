package io.github.tenurego.agent;

import java.io.IOException;
import java.time.Duration;

/** A term of leadership. Pass its token to the resource with each write. */
public final class Term implements AutoCloseable {
  private final Campaign campaign;
  private final long token;
  private boolean open = true;

  Term(Campaign campaign, long token) {
    this.campaign = campaign;
    this.token = token;
  }

  /** Returns the fencing token: higher in every later term of the election. */
  public long token() {
    return token;
  }

  /**
   * Returns whether this program may act now, for {@code needs}. It sends a heartbeat each time:
   * Java has no clock that goes on while the machine sleeps. Act at once, and call it again before
   * the next act, at least each third of the interval of heartbeats. False means to stop: the term
   * is lost, the agent does not answer, too little time is left, or the program must finish.
   */
  public boolean mayAct(Duration needs) {
    if (!open) {
      return false;
    }
    try {
      campaign.beat();
    } catch (IOException e) {
      open = false;
    }
    open = open && campaign.leads(token);
    return open && !campaign.asksToFinish() && campaign.millisLeft() > needs.toNanos() / 1e6;
  }

  /** Reports that the work has ended: the lease is released. */
  public void finished() {
    open = false;
    campaign.finished(token);
  }

  /** Does the same as {@link #finished}. */
  @Override
  public void close() {
    finished();
  }
}
