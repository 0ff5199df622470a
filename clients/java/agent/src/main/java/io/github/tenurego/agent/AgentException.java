package io.github.tenurego.agent;

import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The agent refused a request. */
public class AgentException extends IOException {
  private static final long serialVersionUID = 1;
  private final int status;

  AgentException(int status, Map<String, Object> problem) {
    super(text(status, problem));
    this.status = status;
  }

  private static String text(int status, Map<String, Object> problem) {
    String text = Stream.of("title", "detail", "remedy").map(problem::get).filter(Objects::nonNull)
        .map(Object::toString).collect(Collectors.joining(": "));
    return text.isEmpty() ? "the agent answers with status " + status : text;
  }

  /** Returns the status of the HTTP answer. 410 means that the campaign is over. */
  public int status() {
    return status;
  }
}
