/** One row per sink: how far it has read in the journal, also where nothing was sent. */
import { integer } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Projection } from "./changes.ts";

export const sinks: Projection = {
  table: "sinks",
  needs({ body }) {
    if (body.type !== "notification.queued" && body.type !== "notification.read") return NO_LOOKS;
    return [{ table: "sinks", columns: ["read_position"], where: { name: body.sink } }];
  },
  changes({ body }, [known]) {
    if (body.type !== "notification.queued" && body.type !== "notification.read") return NO_CHANGES;
    const before = known?.[0] === undefined ? 0 : integer(known[0], "read_position");
    const values = { read_position: Math.max(before, body.position) };
    return [{ kind: "put", table: "sinks", key: { name: body.sink }, values }];
  },
};
