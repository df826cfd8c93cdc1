/** What commands try where their network is a list of hosts; see network-world.ts for the servers and names. */

export interface NetworkCommand {
  readonly name: string;
  /** For bash. `$WEB` and `$OTHER` are ports of the host, `$NODE` is Node. */
  readonly command: string;
  /** What the output has to match; the command has to succeed then. Absent: it has to fail. */
  readonly gives?: RegExp;
  /** What the output matches when the wall holds, whatever its exit code. */
  readonly held?: RegExp;
  readonly needs?: string;
}

const NODE = (script: string): string => `"$NODE" -e '${script}'`;
const TCP = (where: string): string =>
  NODE(`require("net").connect(${where}).on("connect",()=>process.exit(0)).on("error",()=>process.exit(1))`);
const ASK = (head: string, value = ""): string =>
  `exec 3<>/dev/tcp/127.0.0.1/\${HTTP_PROXY##*:} && printf '${head}' ${value} >&3 && head -n 1 <&3`;

/** A hop is followed by `curl -L`; `/repo.git` is a repository as plain files. */
export const WORKING: readonly NetworkCommand[] = [
  {
    name: "every variable that programs look at leads to the proxy",
    command: "printenv HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy | sort -u; printenv NO_PROXY",
    gives: /^http:\/\/127\.0\.0\.1:\d+\nlocalhost,127\.0\.0\.1,::1\n$/,
  },
  { name: "curl to a listed address", command: "curl -sS http://127.0.0.1:$WEB/a", gives: /got \/a/, needs: "curl" },
  { name: "curl to a listed name", command: "curl -sS http://good.example:$WEB/a", gives: /got \/a/, needs: "curl" },
  {
    name: "curl to a name below a listed one, through a tunnel",
    command: "curl -sS -p http://a.wild.example:$WEB/b",
    gives: /got \/b/,
    needs: "curl",
  },
  {
    name: "fetch of Node",
    command: NODE("fetch(`http://good.example:${process.env.WEB}/f`).then(r=>r.text()).then(console.log)"),
    gives: /got \/f/,
  },
  {
    name: "http of Node",
    command: NODE("require(`http`).get(`http://good.example:${process.env.WEB}/h`,r=>r.pipe(process.stdout))"),
    gives: /got \/h/,
  },
  {
    name: "git over http",
    command: "git clone -q http://good.example:$WEB/repo.git cloned && cat cloned/file",
    gives: /from the repository/,
    needs: "git",
  },
  {
    name: "a server of its own on the loopback",
    command: NODE(
      "const s=require(`http`).createServer((q,r)=>r.end(`own`)).listen(0,`localhost`,()=>fetch(`http://localhost:${s.address().port}`).then(r=>r.text()).then(t=>{console.log(t);process.exit()}))",
    ),
    gives: /^own$/m,
  },
  {
    name: "a server of its own at an address of which another port is listed",
    command: NODE(
      "const s=require(`http`).createServer((q,r)=>r.end(`own`)).listen(0,`127.0.0.1`,()=>fetch(`http://127.0.0.1:${s.address().port}`).then(r=>r.text()).then(t=>{console.log(t);process.exit()}))",
    ),
    gives: /^own$/m,
  },
  {
    name: "curl to a listed port of the loopback past the proxy",
    command: "curl -sSf --noproxy '*' -m 5 http://127.0.0.1:$WEB/p",
    gives: /got \/p/,
    needs: "curl",
  },
  {
    name: "a listed port of the loopback by a tunnel",
    command: ASK("CONNECT 127.0.0.1:%s HTTP/1.1\\r\\n\\r\\n", "$WEB"),
    gives: / 200 /,
  },
  { name: "a plain connection to a listed port of the loopback", command: TCP("process.env.WEB,`127.0.0.1`") },
  {
    name: "a listed port of the loopback by name",
    command: "curl -sS http://localhost:$NAMED/n",
    gives: /got \/n/,
    needs: "curl",
  },
];

export const HELD: readonly NetworkCommand[] = [
  {
    name: "another name",
    command: "curl -sS http://evil.example:$OTHER/",
    held: /heddle: evil\.example:\d+ is not among the hosts/,
    needs: "curl",
  },
  { name: "another name by a tunnel", command: "curl -sS -p http://evil.example:$OTHER/", needs: "curl" },
  { name: "another port of a listed host", command: "curl -sSf http://127.0.0.1:$OTHER/", needs: "curl" },
  { name: "a redirect to another host", command: "curl -sSfL http://good.example:$WEB/redirect", needs: "curl" },
  { name: "a listed name that leads to this machine", command: "curl -sSf http://loop.example:$OTHER/", needs: "curl" },
  {
    name: "a listed name that leads to metadata",
    command: "curl -sS http://meta.example/",
    held: /leads to 169\.254\.169\.254/,
    needs: "curl",
  },
  {
    name: "a listed name that leads to a private network",
    command: "curl -sS http://ten.example/",
    held: /leads to 10\.0\.0\.1/,
    needs: "curl",
  },
  {
    name: "another header Host",
    command: "curl -sSf -H 'Host: evil.example' http://good.example:$WEB/",
    needs: "curl",
  },
  { name: "an address", command: "curl -sSf http://8.8.8.8/", needs: "curl" },
  { name: "an address as a number", command: "curl -sSf http://2130706433:$OTHER/", needs: "curl" },
  {
    name: "an address by a tunnel",
    command: ASK("CONNECT 127.0.0.1:%s HTTP/1.1\\r\\n\\r\\n", "$OTHER"),
    held: / 403 /,
  },
  { name: "an address in IPv6 by a tunnel", command: ASK("CONNECT [::1]:80 HTTP/1.1\\r\\n\\r\\n"), held: / 403 / },
  {
    name: "the proxy of the host's environment",
    command: "curl -sSf -x http://127.0.0.1:$OTHER http://good.example:$WEB/",
    needs: "curl",
  },
  { name: "curl past the proxy", command: "curl -sSf --noproxy '*' -m 5 http://good.example:$WEB/", needs: "curl" },
  { name: "a plain connection to a port of the host", command: "exec 3<>/dev/tcp/127.0.0.1/$OTHER" },
  { name: "a plain connection to the listed port at another address", command: TCP("process.env.WEB,`127.0.0.2`") },
  { name: "the port of a rule for a name that leads to this machine", command: TCP("process.env.OTHER,`127.0.0.1`") },
  { name: "a plain connection to another machine", command: TCP("{port:443,host:`8.8.8.8`}") },
  { name: "a plain connection in IPv6", command: TCP("process.env.OTHER,`::1`") },
  { name: "an abstract socket of the host", command: TCP("`\\0`+process.env.ABSTRACT") },
  { name: "a socket of the host by its path", command: TCP("process.env.PLAIN") },
  { name: "DNS of a listed name", command: NODE("require(`dns`).lookup(`good.example`,e=>process.exit(e?1:0))") },
  {
    name: "a datagram to the port of DNS",
    command: NODE("require(`dgram`).createSocket(`udp4`).send(`secret`,53,`8.8.8.8`,e=>process.exit(e?1:0))"),
  },
  {
    name: "a datagram to a port of the host",
    command: NODE(
      "require(`dgram`).createSocket(`udp4`).send(`secret`,process.env.UDP,`127.0.0.1`,()=>process.exit(1))",
    ),
  },
  { name: "a raw socket", command: "perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) or exit 1'", needs: "perl" },
  { name: "a network namespace of its own", command: "unshare -Urn true" },
  {
    name: "the network namespace of Heddle",
    command: "nsenter --net=/proc/1/ns/net true && nsenter --net=/proc/$HEDDLE_PID/ns/net true",
  },
  { name: "another address for the loopback", command: "ip addr add 10.0.0.1/8 dev lo", needs: "ip" },
  {
    name: "a second socket at the port of the proxy",
    command: NODE(
      "require(`net`).createServer().on(`error`,()=>process.exit(1)).listen(process.env.HTTP_PROXY.split(`:`).pop(),`127.0.0.1`,()=>process.exit(0))",
    ),
  },
];
