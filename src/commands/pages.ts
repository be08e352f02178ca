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
  doctor: doctorPage,
  config: configPage,
}
