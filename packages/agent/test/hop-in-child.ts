/** A process that dies in the middle of a hop, by a failpoint of its environment. Arguments: the folder of a hop Heddle, who hops. */
import { hopCall, openHopHeddle } from "./hop-heddle.ts";

const [, , folder = "", by = "model"] = process.argv;
const asks = { isUnattended: false, settings: { approvalPolicy: "on-request" } } as const;
const first = { model: { calls: [hopCall("edit")] }, asking: { calls: [hopCall("review")] }, user: { text: "done" } }[
  by
];
const script = [first ?? { text: "nobody hops" }, { text: "done" }];
await using t = await openHopHeddle({ folder, script, ...(by === "asking" ? asks : {}) });
const turn = await t.start("hop");
await turn.done;
if (by === "user") await t.heddle.as("user:owner").hopThread({ threadId: turn.threadId, to: "edit", reason: "go" });
