package io.github.tenurego.agent;

import java.io.IOException;
import java.time.Duration;
import java.util.Objects;

/**
 * An agent of Tenure on the same machine or in the same pod (docs/agent.md).
 *
 * <pre>{@code
 * var agent = new Agent("unix:/run/tenure/agent.sock");
 * try (Campaign campaign = agent.campaign("billing", new Settings())) {
 *   while (true) {
 *     try (Term term = campaign.awaitTerm()) {               // waits until this program leads
 *       while (term.mayAct(Duration.ofSeconds(1))) {         // sends a heartbeat
 *         doOneStep(term.token());                           // takes less than 1 s
 *       }
 *     }
 *   }
 * }
 * }</pre>
 *
 * @param address {@code unix:PATH}, or {@code http://HOST:PORT} on loopback
 * @param token the token of the agent's {@code --listen-token-file}, or an empty string
 * @param timeout how long a request may take
 */
public record Agent(String address, String token, Duration timeout) {
  /** The default of {@code tenure agent --listen}. */
  public static final String DEFAULT_ADDRESS = "unix:/run/tenure/agent.sock";

  public Agent {
    Objects.requireNonNull(address);
    Objects.requireNonNull(token);
    if (timeout.isZero() || timeout.isNegative()) {
      throw new IllegalArgumentException("timeout is " + timeout + "; it must be above 0");
    }
  }

  /** Returns an agent without a token, with a timeout of 2 seconds. */
  public Agent(String address) {
    this(address, "", Duration.ofSeconds(2));
  }

  /**
   * Takes part in an election. Close the campaign when the work has ended.
   *
   * @throws AgentException if the agent refuses the campaign
   * @throws IOException if the agent does not answer
   */
  public Campaign campaign(String election, Settings settings) throws IOException {
    return new Campaign(this, election, settings);
  }
}
