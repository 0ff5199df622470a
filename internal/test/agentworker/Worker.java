import io.github.tenurego.agent.Agent;
import io.github.tenurego.agent.AgentException;
import io.github.tenurego.agent.Campaign;
import io.github.tenurego.agent.Settings;
import io.github.tenurego.agent.Term;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;

/** Acts through the client for Java. As "declines" it says that it is not fit to lead. */
public class Worker {
  public static void main(String[] args) throws Exception {
    int number = Integer.parseInt(args[1].substring(1));
    int pid = (int) ProcessHandle.current().pid();
    var lease = Duration.ofMillis(Long.parseLong(args[3]));
    String mode = args[4];
    var settings = new Settings().id(args[1]).lease(lease).heartbeat(lease.dividedBy(2));
    try (Campaign campaign = begin(new Agent(args[0]), settings);
        var journal = new FileOutputStream(args[2], true)) {
      System.out.println("up");
      while (true) {
        try (Term term = campaign.awaitTerm()) {
          System.out.println("leads " + term.token());
          if (mode.equals("declines")) {
            decline(campaign);
          }
          for (boolean asked = false;; asked = true) {
            long before = System.nanoTime();
            if (!(mode.equals("cached") && asked) && !term.mayAct(Duration.ZERO)) {
              break;
            }
            var act = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
            act.putLong(before).putLong(term.token()).putInt(number).putInt(2);
            journal.write(act.putInt(pid).putInt(pid).array());
            Thread.sleep(5);
          }
          System.out.println("ended " + term.token());
        }
      }
    }
  }

  /** On a busy machine, Java loads the client so slowly that the agent gives up the connection. */
  private static Campaign begin(Agent agent, Settings settings) throws Exception {
    while (true) {
      try {
        return agent.campaign("billing", settings);
      } catch (AgentException e) {
        throw e;
      } catch (IOException e) {
        System.out.println(e);
        Thread.sleep(100);
      }
    }
  }

  private static void decline(Campaign campaign) {
    try {
      campaign.setEligible(false);
    } catch (IOException e) {
      System.out.println(e); // a busy machine has lost the term
    }
  }
}
