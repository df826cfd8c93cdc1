/** Codex behind the ACP adapter of the protocol's makers. */
import { codexSubject } from "../codex-subject.ts";
import type { Subject } from "../subject.ts";

export const subject: Subject = {
  ...codexSubject,
  name: "codex-acp",
  protocol: "acp",
  package: "@agentclientprotocol/codex-acp",
  file: "@agentclientprotocol/codex-acp/dist/index.js",
  setUp(place) {
    const { runner, ...rest } = codexSubject.setUp(place);
    return { ...rest, runner: { ...runner, args: [], folders: [`${place.root}/codex`] } };
  },
  // In Heddle's sandbox it has to leave out its own, and its own is what it asks about.
  says: { asksFirst: false },
};
