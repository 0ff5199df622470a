package io.github.tenurego.shedlock;

import io.github.tenurego.agent.Agent;
import io.github.tenurego.agent.AgentException;
import io.github.tenurego.agent.Settings;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.support.LockException;

/**
 * Locks of ShedLock, each of which is a term of the election of its name.
 *
 * <p>ShedLock holds a lock while a task runs and sends no heartbeats. So the interval of heartbeats
 * is lockAtMostFor, and the last heartbeat is sent within {@code lock} or {@code extend}. Hence:
 *
 * <ul>
 *   <li>Until lockAtMostFor has passed, the agent renews the lease, so no other candidate can
 *       claim it. No two locks of one name exist within this time, if the agent of each runs and
 *       reaches its store. If an agent does not reach it for a lease, the lock ends early, and
 *       nothing stops the task. {@link
 *       TenureLock#mayAct} is false then, and {@link TenureLock#token} protects a resource that
 *       compares it.
 *   <li>After it, nothing is renewed and nothing is released. The next lock exists at the earliest
 *       when the lease has run out. As with any store of ShedLock, a task that runs longer than
 *       lockAtMostFor can run beside the next one.
 *   <li>lockAtLeastFor holds if this process lives as long. When it dies, the lock ends with the
 *       lease.
 * </ul>
 *
 * <p>{@code lock} refuses a lock that this provider holds at once. It waits for a lock that another
 * program holds: for a quarter more than the lease, plus one second, the time to see that a lease
 * runs out. It grants a lock that is unlocked within this wait. To run a task once for all
 * programs, let lockAtLeastFor be longer than this wait.
 *
 * <p>Several threads can use a provider. A thread of its own reads the events of the agent and
 * releases locks after lockAtLeastFor. It sends no heartbeats.
 */
public final class TenureLockProvider implements ExtensibleLockProvider, AutoCloseable {
  private static final Duration MAX_AT_MOST = Duration.ofMinutes(59);
  /** The agent ends the campaign of a client that does not read its events for 10 seconds. */
  private static final int SECONDS_BETWEEN_READS = 5;

  private final Agent agent;
  private final Duration lease;
  private final Map<String, TenureLock.Held> held = new ConcurrentHashMap<>();
  private final ScheduledExecutorService background =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            var thread = new Thread(task, "tenure-locks");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * Returns a provider.
   *
   * @param lease how long a lock remains taken when its process or agent dies, the same for all
   *     programs that use the lock, and at least the shortest lease of the store. Let lockAtMostFor
   *     be at least twice as long.
   */
  public TenureLockProvider(Agent agent, Duration lease) {
    this.agent = agent;
    this.lease = lease;
    background.scheduleWithFixedDelay(
        () -> held.values().forEach(TenureLock.Held::readEvents),
        SECONDS_BETWEEN_READS, SECONDS_BETWEEN_READS, TimeUnit.SECONDS);
  }

  /**
   * Takes a lock, if it is free. A lockAtMostFor below 100 ms counts as 100 ms in the agent.
   *
   * @throws IllegalArgumentException if lockAtMostFor is above 59 minutes
   * @throws LockException if the agent refuses or does not answer
   */
  @Override
  public Optional<SimpleLock> lock(LockConfiguration configuration) {
    Duration atMost = configuration.getLockAtMostFor();
    if (atMost.compareTo(MAX_AT_MOST) > 0) {
      throw new IllegalArgumentException(
          "lockAtMostFor is " + atMost + "; the agent allows at most " + MAX_AT_MOST);
    }
    String name = configuration.getName();
    var mine = new TenureLock.Held(this, name, atMost);
    TenureLock.Held other = held.putIfAbsent(name, mine);
    if (other != null) {
      if (!other.lapsed() || !held.replace(name, other, mine)) {
        return Optional.empty();
      }
      other.abandon();
    }
    boolean granted = false;
    try {
      granted = acquire(mine);
    } catch (AgentException e) {
      if (e.status() != 410) { // 410: a heartbeat was late
        throw new LockException("the agent refuses the lock " + name, e);
      }
    } catch (IOException e) {
      throw new LockException("the agent does not answer for the lock " + name, e);
    } finally {
      if (!granted) {
        mine.release();
      }
    }
    return granted ? Optional.of(new TenureLock(configuration, mine)) : Optional.empty();
  }

  private boolean acquire(TenureLock.Held mine) throws IOException {
    String id = "shedlock-" + UUID.randomUUID();
    var settings = new Settings().id(id).lease(lease).heartbeat(mine.interval());
    mine.campaign = agent.campaign(mine.name, settings);
    mine.term = mine.campaign.awaitTerm(lease.plus(lease.dividedBy(4)).plusSeconds(1));
    return mine.term != null && mine.mayAct(Duration.ZERO);
  }

  void forget(TenureLock.Held lock) {
    held.remove(lock.name, lock);
  }

  void later(Duration delay, Runnable task) {
    background.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS);
  }

  /**
   * Forgets all locks without a release. Their leases run out, perhaps before lockAtLeastFor has
   * passed.
   */
  @Override
  public void close() {
    background.shutdownNow();
    held.values().forEach(TenureLock.Held::abandon);
  }
}
