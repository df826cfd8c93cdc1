/**
 * Goes on with what a restored or promoted server has, although events that were acknowledged are lost: for the owner of the
 * store alone. A new incarnation begins: cursors of the old one are expired, and its processes are refused.
 */
import { integer } from "../record/rows.ts";
import { readAddress } from "./address.ts";
import { connect } from "./driver.ts";
import { lockOf } from "./lock.ts";
import { toStoreError } from "./store-errors.ts";

/** The number of the new incarnation. */
export async function adoptStore(url: string): Promise<number> {
  const address = readAddress(url);
  try {
    const link = await connect({ address, purpose: "migrate" });
    try {
      await link.exec("BEGIN");
      await link.exec(`SELECT pg_advisory_xact_lock(${lockOf(address)})`);
      const sql = "UPDATE journal_state SET incarnation = incarnation + 1, damage = NULL RETURNING incarnation";
      const { rows } = await link.exec(sql);
      await link.exec("COMMIT");
      return integer(rows[0], "incarnation");
    } finally {
      await link.close();
    }
  } catch (error) {
    throw toStoreError(error, address.name);
  }
}
