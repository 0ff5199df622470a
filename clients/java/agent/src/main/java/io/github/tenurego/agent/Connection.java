package io.github.tenurego.agent;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;

/**
 * A connection to the agent. It speaks HTTP/1.0, so that no answer has chunks. The client of
 * java.net.http does not support unix sockets.
 */
final class Connection implements Closeable {
  /** An answer. Its body is empty if the answer is a stream. */
  record Answer(int status, Map<String, Object> body) {}

  private static final int MAX_BYTES = 1 << 20; // of a line or a body

  private final Agent agent;
  private final SocketChannel channel;
  private final Selector selector;
  private final ByteBuffer in = ByteBuffer.allocate(8192).flip();
  private boolean reusable;

  Connection(Agent agent) throws IOException {
    this.agent = agent;
    SocketAddress to = target(agent.address());
    boolean unix = to instanceof UnixDomainSocketAddress;
    selector = Selector.open();
    channel = unix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
    try {
      connect(to, System.nanoTime() + agent.timeout().toNanos());
      if (!unix) {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      }
    } catch (IOException | RuntimeException e) {
      close();
      throw e;
    }
  }

  private static SocketAddress target(String address) {
    if (address.startsWith("unix:")) {
      return UnixDomainSocketAddress.of(address.substring("unix:".length()));
    }
    URI at = URI.create(address.contains("://") ? address : "http://" + address);
    return new InetSocketAddress(at.getHost().replaceAll("[\\[\\]]", ""), at.getPort());
  }

  private void connect(SocketAddress to, long until) throws IOException {
    channel.configureBlocking(false);
    channel.register(selector, SelectionKey.OP_CONNECT);
    if (!channel.connect(to)) {
      while (!channel.finishConnect()) {
        await(SelectionKey.OP_CONNECT, until);
      }
    }
  }

  /** Returns whether the connection can take another request. */
  boolean reusable() {
    return reusable;
  }

  /** Sends a request and reads its answer. The body of a stream is left for {@link #line}. */
  Answer ask(String method, String path, String body, boolean stream) throws IOException {
    reusable = false;
    long until = System.nanoTime() + agent.timeout().toNanos();
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    String head = method + " " + path + " HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n"
        + (agent.token().isEmpty() ? "" : "Authorization: Bearer " + agent.token() + "\r\n")
        + "Content-Length: " + bytes.length + "\r\n\r\n";
    send(head.getBytes(StandardCharsets.UTF_8), until);
    send(bytes, until);
    String[] first = line(until).split(" ");
    if (first.length < 2 || !first[0].startsWith("HTTP/1.")
        || !first[1].matches("[1-5][0-9][0-9]")) {
      throw new IOException("the agent does not speak HTTP: " + String.join(" ", first));
    }
    int status = Integer.parseInt(first[1]);
    var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
    for (String line; !(line = line(until)).isEmpty();) {
      int colon = Math.max(0, line.indexOf(':'));
      headers.put(line.substring(0, colon), line.substring(colon + 1).trim());
    }
    if (stream && status == 200 || status == 204) {
      return new Answer(status, Map.of());
    }
    String length = headers.get("Content-Length");
    String text = length == null ? rest(until) : bytes(Integer.parseInt(length), until);
    reusable = length != null && "keep-alive".equalsIgnoreCase(headers.get("Connection"));
    try {
      return new Answer(status, Json.read(text));
    } catch (IOException e) {
      if (status < 300) {
        throw e;
      }
      return new Answer(status, Map.of("detail", text)); // from a proxy, for example
    }
  }

  private void send(byte[] bytes, long until) throws IOException {
    ByteBuffer out = ByteBuffer.wrap(bytes);
    while (out.hasRemaining()) {
      if (channel.write(out) == 0) {
        await(SelectionKey.OP_WRITE, until);
      }
    }
  }

  /**
   * Waits for a byte, until a time of System.nanoTime. Returns false then, and at the end of the
   * stream.
   */
  boolean readable(long until) throws IOException {
    try {
      return in.hasRemaining() || fill(until);
    } catch (SocketTimeoutException e) {
      return false;
    }
  }

  /** Reads more bytes, and returns false at the end. */
  private boolean fill(long until) throws IOException {
    in.clear();
    int n = 0;
    try {
      while ((n = channel.read(in)) == 0) {
        await(SelectionKey.OP_READ, until);
      }
    } finally {
      in.flip();
    }
    return n > 0;
  }

  private void await(int operation, long until) throws IOException {
    channel.keyFor(selector).interestOps(operation);
    long millis = Duration.ofNanos(until - System.nanoTime()).toMillis();
    int ready = millis > 0 ? selector.select(millis) : selector.selectNow();
    selector.selectedKeys().clear();
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedIOException("interrupted");
    }
    if (ready == 0 && until - System.nanoTime() < 1_000_000) {
      throw new SocketTimeoutException("the agent did not answer within " + agent.timeout());
    }
  }

  private int read(long until) throws IOException {
    return in.hasRemaining() || fill(until) ? in.get() & 0xff : -1;
  }

  /** Reads a line, without its end. */
  String line(long until) throws IOException {
    var line = new ByteArrayOutputStream();
    for (int b; (b = read(until)) != '\n';) {
      if (b < 0 || line.size() > MAX_BYTES) {
        throw new EOFException("the agent has ended the stream");
      }
      line.write(b);
    }
    String text = line.toString(StandardCharsets.UTF_8);
    return text.endsWith("\r") ? text.substring(0, text.length() - 1) : text;
  }

  private String bytes(int length, long until) throws IOException {
    if (length < 0 || length > MAX_BYTES) {
      throw new IOException("the agent's answer has " + length + " bytes");
    }
    byte[] body = new byte[length];
    for (int i = 0; i < length; i++) {
      int b = read(until);
      if (b < 0) {
        throw new EOFException("the agent's answer is incomplete");
      }
      body[i] = (byte) b;
    }
    return new String(body, StandardCharsets.UTF_8);
  }

  private String rest(long until) throws IOException {
    var body = new ByteArrayOutputStream();
    for (int b; body.size() <= MAX_BYTES && (b = read(until)) >= 0;) {
      body.write(b);
    }
    return body.toString(StandardCharsets.UTF_8);
  }

  @Override
  public void close() {
    try (selector; channel) {
      reusable = false;
    } catch (IOException e) {
      // it is closed for this program
    }
  }
}
