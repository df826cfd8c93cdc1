/** The only way in. What an older Node cannot load is loaded after the version was checked. */
import { HeddleError } from "@heddle/protocol";
import type { Heddle, OpenOptions } from "./types.ts";

const MIN_NODE = [24, 19] as const;

export async function openHeddle(options: OpenOptions = {}): Promise<Heddle> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1])) {
    const hint = "on an older one, use heddle/client with a `heddle serve` that runs on a newer one";
    throw new HeddleError(
      "usage.invalid",
      `heddle/engine needs Node ${MIN_NODE.join(".")} or newer, this is ${process.version}; ${hint}`,
    );
  }
  const { openInProcess } = await import("./open-heddle.ts");
  return openInProcess(options);
}
