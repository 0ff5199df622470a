package io.github.tenurego.shedlock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.github.tenurego.agent.Agent;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.support.LockException;
import org.junit.jupiter.api.Test;

/** Tests a provider with a stand-in for an agent, which grants each lock, and with no agent. */
class TenureLockProviderAgentTest {
  private static final Duration LEASE = Duration.ofHours(1);
  /** More than the buffers of a connection hold. */
  private static final int FLOOD_BYTES = 32 << 20;

  private final CountDownLatch locked = new CountDownLatch(1);
  private final CountDownLatch flooded = new CountDownLatch(1);

  /**
   * The thread of a provider reads the events of a lock that is held, also after it has read an
   * event of another lock that is malformed. "a" comes before "b" in the map of the provider.
   */
  @Test
  void readsTheEventsOfEachLock() throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    ExecutorService threads = Executors.newCachedThreadPool();
    server.setExecutor(threads);
    server.createContext("/v1/elections/", this::answer);
    server.start();
    var agent = new Agent("http://127.0.0.1:" + server.getAddress().getPort());
    try (var provider = new TenureLockProvider(agent, LEASE)) {
      assertThat(provider.lock(configuration("a"))).isNotEmpty();
      assertThat(provider.lock(configuration("b"))).isNotEmpty();
      locked.countDown();
      assertThat(flooded.await(5, TimeUnit.MINUTES)).isTrue();
    } finally {
      server.stop(0);
      threads.shutdownNow();
    }
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange; OutputStream out = exchange.getResponseBody()) {
      String path = exchange.getRequestURI().getPath();
      if (path.endsWith("/heartbeat")) {
        exchange.sendResponseHeaders(200, 0);
        write(out, "{\"token\": 1, \"remainingMillis\": 3600000}");
      } else if (path.endsWith("/campaign")) {
        exchange.sendResponseHeaders(200, 0);
        write(out, "data: {\"campaign\": \"c\", \"heartbeatMillis\": 3600000}\n\n");
        locked.await();
        if (path.contains("/a/")) {
          write(out, "data: malformed\n\n");
          flooded.await();
          return;
        }
        String event = "data: {\"token\": 1, \"of\": \"" + "x".repeat(1000) + "\"}\n\n";
        for (int sent = 0; sent < FLOOD_BYTES; sent += event.length()) {
          write(out, event);
        }
        flooded.countDown();
      } else {
        exchange.sendResponseHeaders(204, -1);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void write(OutputStream out, String text) throws IOException {
    out.write(text.getBytes(StandardCharsets.UTF_8));
    out.flush();
  }

  /** A program that waits for its agent tries again and again. */
  @Test
  void failedConnectionsAreClosed() throws Exception {
    try (var provider = new TenureLockProvider(new Agent("unix:/nonexistent/agent"), LEASE)) {
      long before = 0;
      for (int i = 0; i <= 300; i++) {
        assertThatThrownBy(() -> provider.lock(configuration("a"))).isInstanceOf(LockException.class);
        if (i == 0) {
          before = openFiles();
        }
      }
      assertThat(openFiles()).isLessThan(before + 100);
    }
  }

  private static long openFiles() throws IOException {
    try (var files = Files.list(Path.of("/proc/self/fd"))) {
      return files.count();
    }
  }

  private static LockConfiguration configuration(String name) {
    return new LockConfiguration(ClockProvider.now(), name, Duration.ofMinutes(50), Duration.ZERO);
  }
}
