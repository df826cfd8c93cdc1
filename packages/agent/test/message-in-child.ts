/** Sends one message from a thread to another and says how. Arguments: home, sender, receiver, id. Dies at a failpoint of its environment. */
import { openJournal } from "@heddle/journal";
import { sendMessage } from "../src/messages/send.ts";
import { KEEPS, turnOf } from "./message-store.ts";

const [, , home = "", from = "", to = "", messageId = ""] = process.argv;
await using journal = await openJournal({ home });
const sending = { to, text: "the build is red", messageId, from: turnOf(from), by: "agent:embedded" } as const;
process.stdout.write(JSON.stringify(await sendMessage(journal, sending, KEEPS)));
