const exitCodes = `Exit code: 0 fine; 1 problems were found, or what was asked for does not exist or cannot be reached; 2 wrong usage.`

const configPage = `Usage: context-cache-gateway config check [FILE] [--json]
       context-cache-gateway config print [FILE]
       context-cache-gateway config schema

  check    every problem of the configuration, a line each, as serve --check does: options, the files, folders and modules
           that they name, Redis. Listens nowhere
  print    the effective configuration as JSON, without secrets
  schema   the JSON Schema of FILE, for editors; it is deploy/config.schema.json, too

FILE is a YAML file with options; default: the one that CTX_CONFIG_FILE names. The environment overrides it.

Options:
  --json   {"valid", "problems"}

${exitCodes}`

const adminOption = `  --admin URL        admin port of the gateway, perhaps with a path in front of its pages; default: CONTEXT_CACHE_ADMIN_URL, else
                     http://127.0.0.1:9090`

const apiOptions = `${adminOption}
  --token-file FILE  holds the token of the admin port (listen.admin.token); default: CONTEXT_CACHE_ADMIN_TOKEN
  --json             what the API answers, as it is`

const sessionsPage = `Usage: context-cache-gateway sessions ls [--model NAME] [--tenant DIGEST] [--limit N] [--after NEXT] [options]
       context-cache-gateway sessions get ID [options]
       context-cache-gateway sessions rm ID [options]

  ls    sessions, the newest first (with Redis: those that end last)
  get   one session, and its timeline as far as this gateway saw it
  rm    deletes a session and its stored KV, as its client can

ID is the id that clients use (ctx_…), or - to read it from standard input. An argument stands in the list of processes,
where other users of this machine see it; who knows an id and the credential of its tenant uses the session.

Options:
  --model NAME       only sessions of this model
  --tenant DIGEST    only those of this tenant, by the 22 characters that ls shows
  --limit N          at most so many, 1 to 100; default 50
  --after NEXT       go on behind the page before
${apiOptions}

${exitCodes}`

const tenantsPage = `Usage: context-cache-gateway tenants get DIGEST [options]
       context-cache-gateway tenants erase DIGEST [options]

  get     sessions, stored KV, turns and tokens of a tenant
  erase   deletes all of it: sessions, their KV, and the answers that this gateway has cached. Other gateways have cached
          answers of their own: call each of them

DIGEST is the 22 characters by which sessions ls names a tenant; one that begins with - stands behind --.

Options:
${apiOptions}

Exit code: 0 done; 1 failed, or sessions are left: call it again; 2 wrong usage.`

const podsPage = `Usage: context-cache-gateway pods [options]

The pools and their pods as the gateway sees them: running turns, sessions, loads of KV, hits.

Options:
${apiOptions}

${exitCodes}`

const topPage = `Usage: context-cache-gateway top [--once] [options]

What the gateway does now: turns, sessions, hits, saved prefill, time to first token, pods, warnings. Drawn anew every second
until Ctrl-C. Where standard output is no terminal, once.

Options:
  --once             once
${apiOptions}, {"overview", "pods"} on one line every second

${exitCodes}`

const doctorPage = `Usage: context-cache-gateway doctor [--envoy URL] [--url URL] [--config FILE] [options]

Looks at a gateway, its Envoy, its Redis and its engines, and names each mistake with what it does and its fix. It changes
nothing and makes no engine compute. What it cannot look at it says.

Options:
${adminOption}
  --envoy URL        admin port of Envoy: its configuration, runtime and counters
  --url URL          where clients connect: what they reach without a credential
  --config FILE      the gateway's configuration; its variables count, too. It has what no gateway shows: the URL of Redis, the
                     key and the authority of the engines. Default: as serve finds it
  --json             {"findings": [{"check", "severity", "problem", "why", "fix"}], "passed", "notChecked": [{"check", "why"}]}

Exit code: 0 nothing was found; 1 errors or warnings; 2 wrong usage.`

/** Pages of the help, by the names of operators' commands. */
export const operatorPages: Readonly<Record<string, string>> = {
  sessions: sessionsPage,
  tenants: tenantsPage,
  pods: podsPage,
  top: topPage,
  doctor: doctorPage,
  config: configPage,
}
