/** Searches of the web that the provider makes. */
import { SEARCHED } from "../../cases/wires.ts";
import { MOCK_CONFIG, say } from "../../exec-case.ts";
import { threadStarted, turn, type Scenario } from "../scenario.ts";

const OPEN = { sandbox: "danger-full-access" };

export const SEARCHES: readonly Scenario[] = [
  {
    id: "search-configured",
    about: "a search, a page opened and looked through, by the configuration",
    config: `web_search = "live"\n${MOCK_CONFIG}`,
    faults: [SEARCHED],
    moves: [...threadStarted(OPEN), ...turn("What is the weather?")],
  },
  {
    id: "search-asked",
    about: "a search that the client asks for, and the turn after it",
    faults: [SEARCHED],
    script: [say("never said"), say("Still raining.")],
    moves: [
      ...threadStarted({ ...OPEN, config: { web_search: "live" } }),
      ...turn("What is the weather?"),
      ...turn("And now?"),
    ],
  },
  {
    id: "search-by-feature",
    about: "a search by the switch of features that came before, of the owner and of a client",
    config: `${MOCK_CONFIG}\n[features]\nweb_search_request = true\n`,
    faults: [SEARCHED],
    moves: [...threadStarted({}), ...turn("What is the weather?")],
  },
  {
    id: "search-without-network",
    about: "a search that a client asks for in a sandbox without the network",
    script: [say("Hello."), say("Hello again.")],
    moves: [
      ...threadStarted({ sandbox: "workspace-write", config: { web_search: "live" } }),
      ...turn("What is the weather?"),
      ...turn("And now?"),
    ],
  },
];
