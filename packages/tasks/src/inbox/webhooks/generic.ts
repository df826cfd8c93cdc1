/** Any program that can sign: `{ goal, name?, workspace?, thread?, abort?, id? }`, with OpenLoom's names as well. */
import { defined } from "@heddle/protocol";
import { judge, SIGNATURE_HEADER } from "../../notify/signature.ts";
import { header, ignored, table, textIn, type Parser } from "./source.ts";

export const generic: Parser = {
  isSigned: (inbound, secret, now) => judge(header(inbound, SIGNATURE_HEADER), inbound.body, secret, now) === "good",
  parse(inbound) {
    const given = table(JSON.parse(inbound.body.toString("utf8")));
    const goal = textIn(given["goal"]) ?? textIn(given["text"]) ?? textIn(given["prompt"]);
    if (goal === undefined) return ignored("there is no goal in it");
    const name = textIn(given["name"]) ?? textIn(given["title"]);
    const workspace = textIn(given["workspace"]) ?? textIn(given["cwd"]);
    const thread = textIn(given["thread"]) ?? textIn(given["session_id"]) ?? textIn(given["sessionId"]);
    // A signature includes its time: the same one again is the same request.
    const id = textIn(given["id"]) ?? header(inbound, SIGNATURE_HEADER);
    return {
      kind: "order",
      fields: { goal, ...defined({ name, workspace, thread }), ...(given["abort"] === true ? { abort: true } : {}) },
      ...defined({ id }),
    };
  },
};
