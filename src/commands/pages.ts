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

/** Pages of the help, by the names of operators' commands. */
export const operatorPages: Readonly<Record<string, string>> = {
  config: configPage,
}
