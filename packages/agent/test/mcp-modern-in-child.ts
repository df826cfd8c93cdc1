/** The server of the stateless era over standard streams. */
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { modernServer } from "./mcp-modern.ts";

serveStdio(() => modernServer(), { legacy: "reject" });
