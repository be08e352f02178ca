import { unknownName } from './commandline/nearest-name.ts'
import { operatorPages } from './commands/pages.ts'
import { optionGroups, renderOptionGroup, renderOptionGroups } from './config/option-help.ts'
import { policyNames } from './routing/policies.ts'

/** The page of a command or of a group of options. Not found: the text says which page was probably meant. */
export const findHelpPage = (name = 'help'): { readonly isFound: boolean; readonly text: string } => {
  const page = pages.get(name) ?? groupPage(name)
  const text = page ?? unknownName('command', name, [...pages.keys(), ...optionGroups])
  return { isFound: page !== undefined, text }
}

const groupPage = (name: string): string | undefined =>
  optionGroups.includes(name)
    ? `Options of serve, group ${name}: in a YAML file (in the environment)\n\n${renderOptionGroup(name)}`
    : undefined

const mainPage = `Usage: context-cache-gateway [COMMAND] [options]

Commands:
  serve     the gateway alone, for an Envoy configured as in envoy.yaml (default)
  run       everything on this machine: Envoy, the gateway, and two pods of the embedded engine
  vllm-up   two pods of real vLLM with LMCache on this machine's processors
  replay    a trace of requests on a simulated fleet: time to first token, hit ratio, load
  sessions  ls, get, rm: the sessions of a gateway
  tenants   get, erase: what a tenant uses, and the end of all of it
  pods      the pods of a gateway, and what they do
  top       what a gateway does now, in a live table
  doctor    what is wrong with Envoy, gateway, Redis and engines, and the fix
  config    check, print: a configuration; schema: its JSON Schema
  help      this page; help COMMAND: its page; help GROUP: a group of options of serve

Options:
  -h, --help   the page of a command
  --version    the version

Exit code: 0 fine; 1 a fault, or problems that were found; 2 wrong usage.`

const servePage = `Usage: context-cache-gateway [serve] [options]

The gateway alone, for an Envoy configured as in envoy.yaml.

Options:
  --config FILE    YAML file with options; the environment overrides it
  --check          check the configuration and exit, as config check
  --print-config   print the effective configuration, without secrets, and exit, as config print

Environment, of most installations:
  PODS=host:port,…        the engines, as in Envoy's cluster
  CONNECTOR=…             how KV is loaded and stored: llamacpp-slots (default), lmcache, prefix-cache, none
  KV_DIR=/shared/kv       the folder of stored KV, for llamacpp-slots
  LMCACHE_URL=http://…    the coordinator, for lmcache
  REDIS_URL=redis://…     sessions in Redis instead of in memory; or in a Redis Cluster (REDIS_CLUSTER=redis://…), or in
                          the Redis of sentinels (REDIS_SENTINELS=redis://…, REDIS_SENTINEL_MASTER=…)
  CTX_TENANT_SECRET=…     32 characters or more, the same for every gateway; required with Redis

Groups of options (context-cache-gateway help GROUP shows the options of one):
${renderOptionGroups()}`

const runPage = `Usage: context-cache-gateway run

Everything on this machine, until Ctrl-C: Envoy, the gateway, and two pods of the embedded engine. A process that ends is
started again. Missing programs are installed into ~/.cache/context-cache-gateway.

Environment, clients:
  GATEWAY_PORT=8000       where clients connect
  LISTEN_HOST=127.0.0.1   address that accepts clients; 0.0.0.0: all

Environment, engines:
  MODEL=file.gguf         serve this model instead of one with random weights
  PODS=host:port,…        use these engines, with CONNECTOR=… and KV_DIR=… (llamacpp-slots) or LMCACHE_URL=… (lmcache)

Environment, sessions:
  REDIS=1                 start a Redis, so that sessions outlive the gateway
  REDIS_URL=redis://…     use this Redis

Environment, Envoy:
  ENVOY_BIN=…             the Envoy to run; default: the one on PATH, else one is installed

Every option of the gateway (help serve) can be set in the environment too.`

const vllmUpPage = `Usage: context-cache-gateway vllm-up

Two pods of real vLLM with LMCache on this machine's processors, until Ctrl-C, for a gateway with CONNECTOR=lmcache. Says
first what that takes, and installs it.

Environment:
  PYTHON=python3.11   interpreter of version 3.11 to 3.13; default: the first one on PATH`

const replayPage = `Usage: context-cache-gateway replay TRACE [options]

Replays a trace of requests on a simulated fleet, in virtual time, with the code that routes and decides on loads in the
gateway. TRACE is a file in the Mooncake format, gzipped or not: on each line {"timestamp": ms, "input_length": tokens,
"output_length": tokens, "hash_ids": [one for each 512 tokens of the prompt]}, and perhaps "conversation": name
and "pause": ms since the conversation's answer before.

Options, routing:
  --policy=predicted-ttft            ${policyNames.slice(0, 4).join(', ')},
                                     ${policyNames.slice(4).join(', ')}; several with commas between them, or all

Options, fleet:
  --pods=8                           how many pods there are
  --pod-blocks=2000                  blocks of KV that fit into a pod, or unlimited
  --store-blocks=unlimited           blocks of KV that fit into the persistent store; 0 is no store
  --prefill-tokens-per-second=10000  prompt tokens that a pod computes
  --load-tokens-per-second=100000    tokens whose KV a pod loads from the store
  --decode-tokens-per-second=20      tokens that a request generates
  --slots=unlimited                  slots of a pod: a turn holds one, and KV in a pod is what its slots hold
  --processors=unlimited             with --slots: so many pods compute at full speed at a time; more share it
  --turn-overhead-ms=0               with --slots: what a turn takes beside its tokens

Options, trace and result:
  --time-scale=1                     the trace's times are multiplied by this: 0.5 lets the requests come twice as fast
  --wait-for-answers                 with --slots: a conversation's next request waits for the answer before it
  --json=FILE                        write the result there, too`

const pages: ReadonlyMap<string, string> = new Map([
  ['serve', servePage],
  ['run', runPage],
  ['vllm-up', vllmUpPage],
  ['replay', replayPage],
  ...Object.entries(operatorPages),
  ['help', mainPage],
])
