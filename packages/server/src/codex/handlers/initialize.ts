/** The handshake: who calls, and who answers. */
import { hostname, platform } from "node:os";
import { visibleLine } from "@heddle/protocol";
import { codexUserAgent } from "@heddle/models";
import type { Handler } from "../../rpc/call.ts";
import { refuse } from "../thread-facts.ts";

const MAX_NAME_CHARS = 64;

export const initialize: Handler<"initialize"> = async ({ clientInfo, capabilities }, { server, connection }) => {
  if (connection.client !== undefined) throw refuse("Already initialized");
  const name = visibleLine(clientInfo.name).slice(0, MAX_NAME_CHARS);
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
      codexHome: server.home,
      platformFamily: platform() === "win32" ? "windows" : "unix",
      platformOs: platform() === "darwin" ? "macos" : platform(),
      heddle: { version: server.version },
    },
    after() {
      for (const summary of server.configWarnings) {
        connection.notify({ method: "configWarning", params: { summary, details: null } });
      }
      const params = { status: "disabled", serverName: hostname(), installationId: INSTALLATION, environmentId: null };
      connection.notify({ method: "remoteControl/status/changed", params });
    },
  };
};

/** There is no remote control, so installations need no id. */
const INSTALLATION = "00000000-0000-0000-0000-000000000000";
