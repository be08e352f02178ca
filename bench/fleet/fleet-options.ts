import { listOf, readOptions } from '../read-options.ts'
import { wayNames } from './ways.ts'
import type { Workload } from './workload.ts'

export const fleetEngineNames = ['embedded', 'llama-server', 'vllm'] as const

/** What goes wrong at half time. */
export const stormNames = ['none', 'pod-killed', 'pod-replaced', 'all-cold', 'gateway-killed', 'redis-away'] as const
export type StormName = (typeof stormNames)[number]

/** What the conversations are like. */
export const shapeNames = ['completions', 'agents'] as const
export type ShapeName = (typeof shapeNames)[number]

/** Tokens that a pod can hold of one conversation. */
export const contextTokens: Readonly<Record<ShapeName, number>> = { completions: 8192, agents: 32_768 }

const title = `What a fleet of conversations gets, by each of three ways, one after the other, with the same schedule and fresh pods:
  round-robin  to the pods in turn, without a gateway
  affinity     to a pod by a hash of the conversation's name, without a gateway
  gateway      through Envoy and the gateway, with a session for each conversation

"computed anew" is the share of what a client had sent before that an engine computed again, over later turns (from the second on):
the sum of (prompt - cached - new), none below 0, over the sum of (prompt - new); new are the tokens of --more and of the answer before.
Times and shares are those of answered turns. A turn that fails is not sent again; the next one follows after its pause.

Storms come at half time, to each way alike: pod-killed ends the pod that the hash gives most conversations by SIGKILL, pod-replaced by SIGTERM,
and another one is there after 2 s; all-cold ends all pods and removes all stored KV; gateway-killed ends the gateway by SIGKILL and starts it at once; redis-away stops Redis for 10 s.

Shape "agents": requests as Codex, Claude Code and OpenCode send them (/v1/responses, /v1/messages, /v1/chat/completions), with invented texts and
those agents' own headers. The ways are then affinity, an Envoy with a ring hash of those headers in front of the pods, and gateway, which gets the
same requests. OpenCode sends a short prompt for a title under the same name beside its first turn ("beside"). Prompts are as long as --scale makes them, and the
answers as long as the engine likes; --more and --output say how long questions and answers in the history are.

LLAMA_SERVER is the path of a llama-server, VLLM_FLEET the description of a running fleet, as for "make test-vllm".`

/** Reads the command line. @throws Error that names an option and what is wrong with it */
export const readFleetOptions = () => {
  const values = readOptions(title, {
    shape: { value: 'NAME', meaning: shapeNames.join(', '), default: 'completions' },
    scale: { value: 'N', meaning: "agents: size of instructions and tools, of the recorded ones'", default: '0.25' },
    conversations: { value: 'N', meaning: 'conversations at a time', default: '12' },
    turns: { value: 'N', meaning: 'turns of each', default: '5' },
    tokens: { value: 'N', meaning: 'tokens of a first prompt (not agents)', default: '3000' },
    more: { value: 'N', meaning: 'tokens that a later turn adds, beside the answer before', default: '60' },
    output: { value: 'N', meaning: 'tokens of an answer', default: '16' },
    pause: { value: 'SECONDS', meaning: 'mean pause between an answer and the next turn', default: '15' },
    pods: { value: 'N', meaning: 'pods (vllm: not those of VLLM_FLEET)', default: '3' },
    slots: { value: 'N', meaning: 'slots of a pod (not vllm)', default: '2' },
    ways: { value: 'NAME,…', meaning: 'ways to measure (default all of the shape)', default: '' },
    engine: { value: 'NAME', meaning: fleetEngineNames.join(', '), default: 'embedded' },
    model: { value: 'FILE', meaning: 'a GGUF file instead of the one with random weights (not vllm)', default: '' },
    threads: { value: 'N', meaning: 'threads of a llama-server', default: '1' },
    'llama-args': { value: 'TEXT', meaning: 'more flags of llama-server, as in --llama-args="-b 512"', default: '' },
    'kv-blocks': { value: 'N', meaning: "blocks of KV in a pod's memory (vllm; default: 1 GB of them)", default: '' },
    connector: { value: 'NAME', meaning: "the gateway's (vllm): lmcache, prefix-cache", default: 'lmcache' },
    storm: { value: 'NAME', meaning: `at half time: ${stormNames.join(', ')}`, default: 'none' },
    redis: {
      value: '0|1',
      meaning: "1: sessions in a Redis of the bench's own (storms that need one do so)",
      default: '0',
    },
    seed: { value: 'TEXT', meaning: 'of the pauses', default: 'fleet' },
    trace: { value: 'FILE', meaning: "writes the first way's requests as a trace (docs/replay.md)", default: '' },
  })
  const count = (name: keyof typeof values): number => {
    const value = Number(values[name])
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} must be a whole number from 1, not ${values[name]}`)
    return value
  }
  const oneOf = <Name extends string>(name: keyof typeof values, names: readonly Name[], text: string): Name => {
    const found = names.find((candidate) => candidate === text)
    if (found === undefined) throw new Error(`--${name} must be one of ${names.join(', ')}, not ${text}`)
    return found
  }
  const pauseSeconds = Number(values.pause)
  if (!(pauseSeconds > 0)) throw new Error(`--pause must be a number of seconds, not ${values.pause}`)
  const workload: Workload = {
    conversations: count('conversations'),
    turns: count('turns'),
    firstTokens: count('tokens'),
    moreTokens: count('more'),
    outputTokens: count('output'),
    pauseMs: pauseSeconds * 1000,
    seed: values.seed,
  }
  const shape = oneOf('shape', shapeNames, values.shape)
  const scale = Number(values.scale)
  if (!(scale > 0)) throw new Error(`--scale must be a positive number, not ${values.scale}`)
  const waysOfShape = shape === 'agents' ? (['affinity', 'gateway'] as const) : wayNames
  const longest = workload.firstTokens + workload.turns * (workload.moreTokens + workload.outputTokens)
  if (shape === 'completions' && longest > contextTokens.completions)
    throw new Error(`the last turns have ${longest} tokens, and a slot has ${contextTokens.completions}`)
  const storm = oneOf('storm', stormNames, values.storm)
  const engine = oneOf('engine', fleetEngineNames, values.engine)
  if (values['kv-blocks'] && engine !== 'vllm') throw new Error('--kv-blocks is for the pods of vllm')
  if (engine === 'vllm' && ['pod-killed', 'pod-replaced', 'all-cold'].includes(storm))
    throw new Error(`--storm ${storm} is not for the pods of vllm`)
  if (shape === 'agents' && ['pod-killed', 'pod-replaced'].includes(storm))
    throw new Error(`--storm ${storm} is not for agents: only Envoy knows the pod of a name`)
  if (engine === 'llama-server' && !process.env['LLAMA_SERVER'])
    throw new Error('--engine llama-server wants LLAMA_SERVER, the path of a llama-server')
  return {
    workload,
    shape,
    scale,
    engine,
    ways: listOf(values.ways || waysOfShape.join()).map((way) => oneOf('ways', waysOfShape, way)),
    pods: count('pods'),
    slots: count('slots'),
    modelFile: values.model || undefined,
    threads: count('threads'),
    kvBlocks: values['kv-blocks'] ? count('kv-blocks') : undefined,
    connector: oneOf('connector', ['lmcache', 'prefix-cache'], values.connector),
    llamaArguments: values['llama-args'].split(' ').filter((part) => part !== ''),
    storm,
    usesRedis: oneOf('redis', ['0', '1'], values.redis) === '1' || ['gateway-killed', 'redis-away'].includes(storm),
    traceFile: values.trace || undefined,
  }
}

export type FleetOptions = ReturnType<typeof readFleetOptions>
