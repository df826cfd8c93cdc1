/** Closes what dead processes left, when a Heddle opens. Most starts find nothing and load nothing for it. */
import type { Journal } from "@heddle/journal";
import type { Recovered } from "./recover.ts";

const NOTHING_RECOVERED: Recovered = { closed: 0, parked: [] };

export async function recoverOnOpen(journal: Journal, home: string): Promise<Recovered> {
  if (journal.damage !== undefined) return NOTHING_RECOVERED;
  const [held, ephemeral] = [await journal.leases.held(), await journal.threads.ephemeral()];
  if (held.length + ephemeral.length === 0) return NOTHING_RECOVERED;
  const { forgetEphemeral, recover } = await import("./recover.ts");
  const recovered = await recover(journal);
  await forgetEphemeral(journal, home);
  return recovered;
}
