package io.github.tenurego.shedlock;

import io.github.tenurego.agent.Campaign;
import io.github.tenurego.agent.Term;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;
import net.javacrumbs.shedlock.core.AbstractSimpleLock;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;

/** A lock of a {@link TenureLockProvider}. */
public final class TenureLock extends AbstractSimpleLock {
  private final Held held;

  TenureLock(LockConfiguration configuration, Held held) {
    super(configuration);
    this.held = held;
  }

  /** Returns the fencing token: higher in each later lock of this name. */
  public long token() {
    return held.term.token();
  }

  /**
   * Returns whether the lock is held now, and for {@code needs}. It asks the agent with a
   * heartbeat, which also begins lockAtMostFor again in the agent.
   */
  public boolean mayAct(Duration needs) {
    return !expired() && held.mayAct(needs);
  }

  private boolean expired() {
    return !ClockProvider.now().isBefore(lockConfiguration.getLockAtMostUntil());
  }

  /** Releases the lock when lockAtLeastFor has passed. After lockAtMostFor it releases nothing. */
  @Override
  protected void doUnlock() {
    Duration wait = Duration.between(ClockProvider.now(), lockConfiguration.getLockAtLeastUntil());
    if (expired()) {
      held.abandon();
    } else if (wait.isNegative() || wait.isZero()) {
      held.release();
    } else {
      held.releaseAfter(wait);
    }
  }

  /**
   * Extends the lock with a heartbeat. The result is empty if the lock is lost, or if the new
   * lockAtMostFor is above that of the first lock: the interval of heartbeats is fixed.
   */
  @Override
  protected Optional<SimpleLock> doExtend(LockConfiguration newConfiguration) {
    boolean fits = newConfiguration.getLockAtMostFor().compareTo(held.atMost) <= 0;
    return fits && mayAct(Duration.ZERO)
        ? Optional.of(new TenureLock(newConfiguration, held))
        : Optional.empty();
  }

  /** The campaign of a lock, and of the locks that extend it. */
  static final class Held {
    private static final Duration MIN_INTERVAL = Duration.ofMillis(100); // of the agent

    final TenureLockProvider provider;
    final String name;
    final Duration atMost;
    Campaign campaign;
    Term term;
    private boolean done;
    /** When the agent ends the campaign: a time of day, in milliseconds. */
    private volatile long until = Long.MAX_VALUE;

    Held(TenureLockProvider provider, String name, Duration atMost) {
      this.provider = provider;
      this.name = name;
      this.atMost = atMost;
    }

    /** Asks the agent, by a heartbeat. */
    synchronized boolean mayAct(Duration needs) {
      boolean may = !done && term.mayAct(needs);
      if (may) {
        until = System.currentTimeMillis() + interval().toMillis();
      }
      return may;
    }

    /** Returns whether the agent has ended this campaign, as no heartbeat came. */
    boolean lapsed() {
      return System.currentTimeMillis() > until;
    }

    /**
     * Returns the interval of heartbeats: lockAtMostFor, with 1 % for the drift of the agent's
     * clock, so that the lock does not end before that.
     */
    Duration interval() {
      Duration interval = atMost.plus(atMost.dividedBy(100)).plusMillis(1);
      return interval.compareTo(MIN_INTERVAL) < 0 ? MIN_INTERVAL : interval;
    }

    /** Reads the events of a lock that is held. It is no heartbeat. */
    synchronized void readEvents() {
      if (done || until == Long.MAX_VALUE) {
        return;
      }
      try {
        campaign.readEvents();
      } catch (IOException e) {
        // mayAct finds that the lock is lost
      }
    }

    synchronized void releaseAfter(Duration wait) {
      if (!done) {
        provider.later(wait, this::release);
      }
    }

    /** Reports that the work has ended. */
    synchronized void release() {
      if (!done && campaign != null) {
        campaign.close();
      }
      done = true;
      provider.forget(this);
    }

    /** Ends the campaign without a report: the lease runs out. */
    synchronized void abandon() {
      if (!done && campaign != null) {
        campaign.abandon();
      }
      done = true;
      provider.forget(this);
    }
  }
}
