/** Applies a two-file patch in the folder given as argument and prints the outcome; started with a failpoint armed. */
import { envelopeFor } from "../src/calls/envelopes.ts";
import { dispatch } from "../src/calls/dispatch.ts";
import { toolsFor } from "../src/calls/registry.ts";
import { openUnconfined } from "../src/sandbox/open.ts";
import { openThreadState } from "../src/calls/thread-state.ts";

const workspace = process.argv[2] ?? "";
const envelope = envelopeFor({
  mode: "workspace-write",
  workspace,
  writableRoots: [],
  networkAccess: false,
  approval: "never",
  masked: [],
});
const patch = "*** Begin Patch\n*** Update File: a.txt\n-1\n+2\n*** Update File: b.txt\n-1\n+2\n*** End Patch";
const outcome = await dispatch(
  { callId: "c", name: "apply_patch", input: patch, shape: "freeform" },
  {
    toolset: toolsFor("openai", envelope),
    envelope,
    sandbox: openUnconfined({ workspace, writeRoots: [workspace], masked: [], network: "none" }),
    state: openThreadState({ blobFolder: workspace, environment: {} }),
    cwd: workspace,
    signal: new AbortController().signal,
    remembered: new Set(),
    newItemId: () => "i",
    onStarted: async () => undefined,
    ask: async () => ({ decision: "decline", by: "user:owner" }),
    onViolation: async () => undefined,
    stream: () => undefined,
  },
);
process.stdout.write(JSON.stringify(outcome));
