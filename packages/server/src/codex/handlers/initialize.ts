/** The handshake: who calls, and who answers. */
import { hostname, platform } from "node:os";
import { callerName, visibleLine } from "@heddle/protocol";
import { codexUserAgent } from "@heddle/models";
import { isOwner } from "../../access/full-access.ts";
import type { Handler } from "../../rpc/call.ts";
import { refuse } from "../thread-facts.ts";

export const initialize: Handler<"initialize"> = async ({ clientInfo, capabilities }, { server, connection }) => {
  if (connection.client !== undefined) throw refuse("Already initialized");
  const name = nameOf(clientInfo.name);
  const originator = server.originator ?? name;
  connection.client = {
    name: originator,
    version: clientInfo.version,
    isExperimental: capabilities?.experimentalApi === true,
    mutedMethods: new Set(capabilities?.optOutNotificationMethods ?? []),
  };
  const program = `heddle/${server.version} (${name}; ${visibleLine(clientInfo.version)})`;
  return {
    result: {
      userAgent: codexUserAgent(originator, program),
      // Of a machine that only its owner knows.
      codexHome: isOwner(connection.principal) ? server.home : "",
      platformFamily: platform() === "win32" ? "windows" : "unix",
      platformOs: platform() === "darwin" ? "macos" : platform(),
      heddle: { version: server.version },
    },
    after() {
      if (!isOwner(connection.principal)) return;
      for (const summary of server.configWarnings) {
        connection.notify({ method: "configWarning", params: { summary, details: null } });
      }
      const params = { status: "disabled", serverName: hostname(), installationId: INSTALLATION, environmentId: null };
      connection.notify({ method: "remoteControl/status/changed", params });
    },
  };
};

/** Providers are told it in a header. A client without a name is let in, as the original does. */
function nameOf(given: string): string {
  const name = callerName(given);
  if (name === undefined && given.trim() !== "") {
    throw refuse(`Invalid clientInfo.name: '${given.slice(0, MAX_SHOWN_CHARS)}'. Must be a valid HTTP header value.`);
  }
  return name ?? "";
}

/** Of a name that is refused. */
const MAX_SHOWN_CHARS = 200;

/** There is no remote control, so installations need no id. */
const INSTALLATION = "00000000-0000-0000-0000-000000000000";
