/** One client on standard input and output; its end is the end of the server. */
import type { Channel } from "../rpc/channel.ts";
import { lineChannel } from "./line-channel.ts";

export function stdioChannel(stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream): Channel {
  return lineChannel({
    name: "stdio",
    input: stdin,
    output: stdout,
    destroy() {
      stdin.destroy();
      stdout.destroy();
    },
  });
}
