import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { constants, readFileSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { createServer, type ListenOptions, type Server } from 'node:net'
import { untilAborted, withinLimit } from '../async/deadline.ts'
import { type ConfigProblem, problemIf } from '../config/config-problem.ts'
import { connectorOf, type PoolConfig, poolsOf } from '../config/pools.ts'
import { redisChoiceOf, redisLocationOf, redisOptions, storeOf } from '../config/redis-choice.ts'
import type { ParsedConfig } from '../config/schema.ts'
import { removeStaleSocket } from '../extproc/server.ts'
import { loadConnector } from '../kvcache/load-connector.ts'
import { loadFunction } from '../kvcache/load-member.ts'
import { connectors } from '../kvcache/registry.ts'
import { createRedisConnection } from '../redis/create-redis-connection.ts'
import { createRedisSessionStore } from '../sessions/redis/create-redis-session-store.ts'
import { sentenceOf } from '../telemetry/sentence-of.ts'

const limitMs = 5_000

/** Something that a start does, and the option that is wrong if it throws or takes too long. */
interface Attempt {
  readonly option: string
  /** Named where that option has its default, and this one does not. */
  readonly against?: string
  readonly problem: string
  readonly work: () => unknown
}

/**
 * What keeps `serve` from working though the options are valid: files, folders and modules that cannot be used. Before
 * a `start` also addresses that cannot be listened on. A `check` listens nowhere, since a gateway with the same options
 * may run; it asks Redis whether it lets the gateway in, without which `serve` would start and wait.
 */
export const findStartProblems = async (
  groups: Partial<ParsedConfig>,
  purpose: 'start' | 'check',
): Promise<readonly ConfigProblem[]> => {
  const { listen, sessions, routing, engines, kv, pools } = groups
  const servers: Server[] = []
  const starts = purpose === 'start'
  if (starts && listen?.extproc.socketPath !== undefined) await removeStaleSocket(listen.extproc.socketPath)
  const attempts = [
    ...(listen === undefined || !starts ? [] : listening(listen, servers)),
    ...(listen === undefined ? [] : readingTls(listen.extproc.tls)),
    ...(sessions === undefined || starts ? [] : askingRedis(sessions)),
    ...(routing && engines && kv && pools ? poolsOf({ routing, engines, kv, pools }) : []).flatMap((pool) =>
      using(pool, pools?.findIndex(({ name }) => name === pool.name) ?? -1),
    ),
  ]
  const problems = await Promise.all(attempts.map(problemOf))
  for (const server of servers) server.close()
  return problems.flat()
}

const problemOf = async ({ option, against, problem, work }: Attempt): Promise<readonly ConfigProblem[]> => {
  try {
    await withinLimit(limitMs, (signal) => untilAborted(Promise.resolve(work()), signal, () => signal.throwIfAborted()))
    return []
  } catch (error) {
    // Without the path that Node.js adds: the option tells it.
    const [reason] = sentenceOf(error).split(/, \w+ '| imported from .*load-member/)
    return problemIf(true, option, `${problem} (${reason})`, against === undefined ? [] : [against])
  }
}

/** The servers listen until all attempts are over: both addresses may be the same. */
const listening = ({ extproc, admin }: ParsedConfig['listen'], servers: Server[]): readonly Attempt[] => {
  const { host, port, socketPath: path } = extproc
  const listenOn = (name: string, options: ListenOptions): Attempt => ({
    option: `listen.${name}`,
    against: `listen.${name.replace('port', 'host')}`,
    problem: 'cannot be listened on',
    work: async () => {
      // A client that connects meanwhile, such as Envoy, would wait for an answer.
      const server = createServer((socket) => socket.destroy())
      servers.push(server)
      await once(server.listen(options), 'listening')
    },
  })
  return [
    path === undefined ? listenOn('extproc.port', { host, port }) : listenOn('extproc.socketPath', { path }),
    listenOn('admin.port', admin),
  ]
}

const reading = (option: string, read: (file: string) => unknown, file: string | undefined): readonly Attempt[] =>
  file === undefined ? [] : [{ option, problem: 'cannot be used', work: () => read(file) }]
const readCertificate = (file: string) => new X509Certificate(readFileSync(file))
const readKey = (file: string) => createPrivateKey(readFileSync(file))

const readingTls = (tls: ParsedConfig['listen']['extproc']['tls']): readonly Attempt[] => {
  if (tls === undefined) return []
  const option = 'listen.extproc.tls'
  const readPair = (file: string): void => {
    const certificate = readCertificate(file)
    let key: KeyObject
    try {
      key = readKey(tls.key)
    } catch {
      return // A problem of its own.
    }
    if (!certificate.checkPrivateKey(key)) throw new Error(`it does not belong to ${option}.key`)
  }
  return [
    ...reading(`${option}.certificate`, readPair, tls.certificate),
    ...reading(`${option}.key`, readKey, tls.key),
    ...reading(`${option}.clientCa`, readCertificate, tls.clientCa),
  ]
}

/** Runs a script of the session store: a user may be let in, and not be allowed that. */
const askingRedis = (sessions: ParsedConfig['sessions']): readonly Attempt[] => {
  const choice = redisChoiceOf(sessions)
  if (choice === undefined || storeOf(sessions) !== 'redis') return []
  const work = async (): Promise<void> => {
    const faults: unknown[] = []
    const onFault = (error: unknown): void => void faults.push(error)
    const connection = await createRedisConnection({
      ...redisLocationOf(choice),
      keyPrefix: sessions.keyPrefix,
      commandTimeoutMs: limitMs,
      onFault,
    })
    await createRedisSessionStore({ connection, partitions: sessions.partitions }).counts().catch(onFault)
    await connection.close()
    if (faults[0] !== undefined) throw faults[0]
  }
  const option = redisOptions.find((one) => sessions[one] !== undefined) ?? 'redisUrl'
  return [{ option: `sessions.${option}`, problem: 'Redis cannot be used', work }]
}

/** `index`: in `pools`; less than 0: the default pool. */
const using = ({ https, caFile, kubernetes, kv }: PoolConfig, index: number): readonly Attempt[] => {
  const path = `pools.${index}`
  const [podsPath, enginesPath, kvPath] = index < 0 ? ['routing', 'engines', 'kv'] : [path, path, `${path}.kv`]
  const usesDirectory = connectors.some((connector) => connector.name === connectorOf(kv) && connector.usesDirectory)
  // The slash: a file is no folder.
  const enter = (directory: string) => access(`${directory}/`, constants.R_OK | constants.W_OK | constants.X_OK)
  return [
    ...reading(`${podsPath}.kubernetes.kubeconfigFile`, readFileSync, kubernetes?.kubeconfigFile),
    ...(https ? reading(`${enginesPath}.caFile`, readCertificate, caFile) : []),
    ...reading(`${kvPath}.connectorModule`, loadConnector, kv.connectorModule),
    ...reading(`${kvPath}.storeModule`, (file) => loadFunction(file, 'createArtefactStore'), kv.storeModule),
    ...(usesDirectory ? reading(`${kvPath}.directory`, enter, kv.directory) : []),
  ]
}
