import io.github.tenurego.agent.Agent;
import io.github.tenurego.agent.AgentException;
import io.github.tenurego.agent.Campaign;
import io.github.tenurego.agent.Settings;
import io.github.tenurego.agent.Term;
import java.io.FileOutputStream;
import java.io.IOException;
import java.time.Duration;

/**
 * Acts while it leads, and writes each act into a journal: the time before it asked whether it may
 * act, and the token. As "cached" it asks once in each term, which is a mistake. As "declines" it
 * says that it is not fit to lead.
 */
public class AgentWorker {
  public static void main(String[] args) throws Exception {
    boolean cached = args[3].equals("cached");
    var settings = new Settings().id(args[1]).lease(Duration.ofSeconds(2))
        .heartbeat(Duration.ofMillis(600));
    try (Campaign campaign = new Agent("unix:" + args[0]).campaign("billing", settings);
        var journal = new FileOutputStream(args[2], true)) {
      System.out.println("up");
      while (true) {
        try (Term term = campaign.awaitTerm()) {
          System.out.println("leads " + term.token());
          if (args[3].equals("declines")) {
            decline(campaign);
          }
          for (boolean asked = false;; asked = true) {
            double before = System.nanoTime() / 1e9;
            if (!(cached && asked) && !term.mayAct(Duration.ZERO)) {
              break;
            }
            journal.write((before + " " + term.token() + "\n").getBytes());
            Thread.sleep(5);
          }
          System.out.println("ended " + term.token());
        }
      }
    }
  }

  private static void decline(Campaign campaign) throws IOException {
    try {
      campaign.setEligible(false);
    } catch (AgentException e) {
      System.out.println(e); // a busy machine has lost the term
    }
  }
}
