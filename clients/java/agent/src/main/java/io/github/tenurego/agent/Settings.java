package io.github.tenurego.agent;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** Settings of a campaign. The agent has defaults for those that are left out. */
public final class Settings {
  private final Map<String, Object> fields = new LinkedHashMap<>();

  private Settings with(String name, Object value) {
    fields.put(name, value);
    return this;
  }

  /** Sets the id of the candidate, which no other candidate of the election has. */
  public Settings id(String id) {
    return with("id", id);
  }

  /**
   * Sets the longest time between two heartbeats, from 100 ms to 1 h: by default a third of the
   * lease. It is rounded down to milliseconds.
   */
  public Settings heartbeat(Duration interval) {
    return with("heartbeatMillis", interval.toMillis());
  }

  /** Sets the lease. All candidates of an election have the same one. */
  public Settings lease(Duration lease) {
    return with("leaseMillis", lease.toMillis());
  }

  /** Sets the part of the lease that the work needs to stop. */
  public Settings stopWithin(Duration time) {
    return with("stopWithinMillis", time.toMillis());
  }

  /** Sets how long the work may take to finish when it is asked to. */
  public Settings finishWithin(Duration time) {
    return with("finishWithinMillis", time.toMillis());
  }

  /** Sets the priority: candidates with a higher one have precedence. */
  public Settings priority(int priority) {
    return with("priority", priority);
  }

  /** Sets the address at which other programs find the leader. */
  public Settings address(String address) {
    return with("address", address);
  }

  /** Sets fields that observers see. */
  public Settings metadata(Map<String, String> metadata) {
    return with("metadata", Map.copyOf(metadata));
  }

  String json() {
    return Json.write(fields);
  }
}
