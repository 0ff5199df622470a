package io.github.tenurego.shedlock;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.tenurego.agent.Agent;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.ExtensibleLockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.test.support.AbstractExtensibleLockProviderIntegrationTest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Runs ShedLock's own tests with two agents at one store. Five of its cases have other times. */
class TenureLockProviderTest extends AbstractExtensibleLockProviderIntegrationTest {
  private static final Duration LEASE = Duration.ofMillis(Integer.getInteger("tenure.lease"));
  /** Long enough for a busy machine, and at least two leases. */
  private static final Duration AT_MOST = LEASE.multipliedBy(2).plusSeconds(8);

  private final TenureLockProvider mine = provider("tenure.agent");
  private final TenureLockProvider other = provider("tenure.other");

  private static TenureLockProvider provider(String property) {
    return new TenureLockProvider(new Agent(System.getProperty(property)), LEASE);
  }

  @AfterEach
  void close() {
    mine.close();
    other.close();
  }

  @Override
  protected ExtensibleLockProvider getLockProvider() {
    return mine;
  }

  @Override
  protected void assertUnlocked(String name) {
    Optional<SimpleLock> lock = other.lock(lockConfig(name));
    assertThat(lock).isNotEmpty();
    lock.get().unlock();
  }

  @Override
  protected void assertLocked(String name) {
    assertThat(other.lock(lockConfig(name))).isEmpty();
  }

  /** ShedLock's 50 ms are below every store's shortest lease. */
  @Test
  @Override
  public void shouldTimeout() throws InterruptedException {
    doTestTimeout(LEASE.multipliedBy(2));
  }

  /** ShedLock's two seconds may pass on a busy machine before the lock is granted. */
  @Test
  @Override
  public void shouldLockAtLeastFor() {
    Duration atLeast = AT_MOST.dividedBy(2);
    Instant begun = ClockProvider.now();
    Optional<SimpleLock> lock = mine.lock(lockConfig(LOCK_NAME1, AT_MOST, atLeast));
    assertThat(lock).isNotEmpty();
    lock.get().unlock();
    Optional<SimpleLock> next = Optional.empty();
    for (int i = 0; next.isEmpty(); i++) {
      next = (i % 2 == 0 ? mine : other).lock(lockConfig(LOCK_NAME1));
    }
    // the system may slow down its time of day a little
    assertThat(ClockProvider.now()).isAfter(begun.plus(atLeast).minusMillis(50));
    next.get().unlock();
  }

  /** ShedLock's 2 ms pass before a store has answered. */
  @Test
  @Override
  public void shouldNotBeAbleToExtendExpiredLock() {
    SimpleLock lock = taken(LOCK_NAME1);
    sleepFor(AT_MOST.plusMillis(1));
    assertThat(lock.extend(AT_MOST, Duration.ZERO)).isEmpty();
    assertUnlocked(LOCK_NAME1);
  }

  /** ShedLock's test extends a lock of 1 s by 10 s, but the interval of heartbeats is fixed. */
  @Test
  @Override
  public void shouldBeAbleToExtendLock() {
    extendsAfterHalf(1);
  }

  /** The same holds for this one. */
  @Test
  @Override
  public void shouldBeAbleToExtendMultipleTimes() {
    extendsAfterHalf(3);
  }

  @Test
  void shouldNotExtendForLonger() {
    SimpleLock lock = taken("left"); // the other tests do not wait for its lease
    assertThat(lock.extend(AT_MOST.plusMillis(1), Duration.ZERO)).isEmpty();
  }

  private SimpleLock taken(String name) {
    Optional<SimpleLock> lock = mine.lock(lockConfig(name, AT_MOST, Duration.ZERO));
    assertThat(lock).isNotEmpty();
    return lock.get();
  }

  private void extendsAfterHalf(int times) {
    SimpleLock lock = taken(LOCK_NAME1);
    for (int i = 0; i < times; i++) {
      sleepFor(AT_MOST.dividedBy(2));
      Optional<SimpleLock> extended = lock.extend(AT_MOST, Duration.ZERO);
      assertThat(extended).isNotEmpty();
      lock = extended.get();
    }
    sleepFor(AT_MOST.dividedBy(2).plusMillis(1)); // the first lock has ended
    assertThat(((TenureLock) lock).mayAct(Duration.ZERO)).isTrue();
    assertLocked(LOCK_NAME1);
    lock.unlock();
    assertUnlocked(LOCK_NAME1);
  }
}
