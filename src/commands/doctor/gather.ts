import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { isAbsolute, join } from 'node:path'
import { Agent } from 'undici'
import type { Config } from '../../config/config.ts'
import { poolsOf } from '../../config/pools.ts'
import { redisLocationOf } from '../../config/redis-choice.ts'
import { readJson } from '../../json/read-json.ts'
import { sentenceOf } from '../../telemetry/sentence-of.ts'
import { type Answer, ask, below, type Question } from '../ask.ts'
import { readClock } from './clock-reading.ts'
import { askEngineFacts, type EngineFacts } from './engine-facts.ts'
import { type EnvoyFacts, readEnvoyFacts } from './envoy-facts.ts'
import type { Facts, LuaFiles } from './facts.ts'
import { type GatewayFacts, readGatewayFacts } from './gateway-facts.ts'
import { type Known, known, type Seen, unknown } from './known.ts'
import { askOutside } from './outside-facts.ts'
import { askFullCoverage } from './redis-coverage.ts'
import { askRedis } from './redis-facts.ts'
import { defaultSettings, readSettings, type Settings } from './settings.ts'

/** Where the parts of an installation are. */
export interface Places {
  /** `http://127.0.0.1:9090` */
  readonly admin: string
  /** Otherwise it is the usual one, where there may be none. */
  readonly isAdminGiven: boolean
  /** Envoy's admin port. */
  readonly envoy: string | undefined
  /** Where clients connect. */
  readonly url: string | undefined
  /** The gateway's own configuration. */
  readonly config: Config | undefined
}

const maxJsonLength = 64 * 1024 * 1024

/** Asks all parts at the same time. Changes nothing. */
export const gatherFacts = async ({ admin, isAdminGiven, envoy, url, config }: Places): Promise<Facts> => {
  const location = config?.sessions.store === 'redis' ? redisLocationOf(config.sessions) : undefined
  const [gateway, ofEnvoy, outside, ofRedis, ofCluster] = await Promise.all([
    lookAtGateway(admin),
    envoy === undefined
      ? { facts: unknown('give the address of Envoy’s admin port (--envoy http://127.0.0.1:9901)'), clocks: [] }
      : lookAtEnvoy(envoy),
    url === undefined
      ? { facts: unknown('give the address where clients connect (--url http://127.0.0.1:8000)'), clocks: [] }
      : askOutside(url),
    location && askRedis(location),
    location && askFullCoverage(location),
  ])
  const settings = (config && readSettings(config)) ?? gateway.settings ?? defaultSettings()
  const withoutUrl =
    settings.sessions.store === 'redis' || gateway.settings === undefined
      ? 'give the gateway’s configuration, which has the URL of Redis (--config FILE, or its variables)'
      : 'sessions are in memory'
  const redis = ofRedis ?? { facts: unknown(withoutUrl), clocks: [] }
  const engines = await lookAtEngines(gateway.facts, config)
  return {
    settings,
    silent: [
      ...(isAdminGiven || (envoy === undefined && url === undefined) ? [gateway.facts] : []),
      ...(envoy === undefined ? [] : [ofEnvoy.facts]),
      ...(url === undefined ? [] : [outside.facts]),
    ].flatMap((facts) => (facts.kind === 'unknown' ? [facts.why] : [])),
    gateway: gateway.facts,
    envoy: ofEnvoy.facts,
    outside: outside.facts,
    redis: redis.facts,
    fullCoverage: ofCluster ?? unknown(withoutUrl),
    engines: engines.facts,
    clocks: [gateway, ofEnvoy.clocks.length > 0 ? ofEnvoy : outside, redis, engines].flatMap(({ clocks }) => clocks),
    lua: luaFiles(envoy),
  }
}

const json = (answer: Answer | string): unknown =>
  typeof answer === 'string' ? undefined : readJson(answer.text, maxJsonLength)

const lookAtGateway = async (
  admin: string,
): Promise<Seen<GatewayFacts> & { readonly settings?: Settings | undefined }> => {
  const [page, config] = await Promise.all([ask(below(admin, '/readyz')), ask(below(admin, '/config'))])
  if (typeof page === 'string') return { facts: unknown(`${page} (--admin)`), clocks: [] }
  const facts = readGatewayFacts(json(page))
  return {
    facts: facts === undefined ? unknown(`${admin} is not the admin port of a gateway (--admin)`) : known(facts),
    clocks: readClock('the gateway', page),
    settings: readSettings(json(config)),
  }
}

const lookAtEnvoy = async (address: string): Promise<Seen<EnvoyFacts>> => {
  const at = (path: string) => ask(below(address, path))
  const [info, ...others] = await Promise.all([
    at('/server_info'),
    at('/config_dump?include_eds'),
    at('/clusters?format=json'),
    at('/runtime'),
    at('/stats?format=json&filter=overflow'),
  ])
  if (typeof info === 'string') return { facts: unknown(`${info} (--envoy)`), clocks: [] }
  const clocks = readClock('Envoy', info)
  try {
    const [configDump, clusters, runtime, stats] = others.map(json)
    return { facts: known(readEnvoyFacts({ configDump, serverInfo: json(info), clusters, runtime, stats })), clocks }
  } catch (error) {
    return { facts: unknown(`${address} does not answer as an Envoy’s admin port does: ${sentenceOf(error)}`), clocks }
  }
}

const lookAtEngines = async (
  gateway: Known<GatewayFacts>,
  config: Config | undefined,
): Promise<Seen<readonly EngineFacts[]>> => {
  const pools = config === undefined ? [] : poolsOf(config)
  const pods =
    gateway.kind === 'known'
      ? gateway.value.pods.filter(({ ready }) => ready)
      : pools.flatMap(({ name, pods: addresses }) => addresses.map((address) => ({ pool: name, address })))
  if (pods.length === 0) return { facts: unknown('no pods are known, or none is ready'), clocks: [] }
  const agents: Agent[] = []
  const answers = await Promise.all(
    pods.map(({ pool, address }) => {
      const access = pools.find(({ name }) => name === pool)
      const question: Question = {
        headers: access?.apiKey === undefined ? {} : { authorization: `Bearer ${access.apiKey}` },
        dispatcher: access?.https === true ? agentFor(access, agents) : undefined,
      }
      return askEngineFacts({ pool, address, scheme: access?.https === true ? 'https' : 'http' }, question)
    }),
  )
  await Promise.all(agents.map((agent) => agent.destroy()))
  const seen = answers.filter((answer) => typeof answer !== 'string')
  const [reason] = answers.filter((answer) => typeof answer === 'string')
  return {
    facts: reason !== undefined ? unknown(reason) : known(seen.map(({ facts }) => facts)),
    clocks: seen.flatMap(({ clocks }) => clocks),
  }
}

const agentFor = (
  { caFile, serverName }: { readonly caFile?: string | undefined; readonly serverName?: string | undefined },
  agents: Agent[],
): Agent => {
  const ca = caFile === undefined ? undefined : readFileSync(caFile, 'utf8')
  const agent = new Agent({ connect: { ca, servername: serverName } })
  agents.push(agent)
  return agent
}

const packageFile = (...path: readonly string[]): string =>
  readFileSync(join(createRequire(import.meta.url).resolve('#package.json'), '..', ...path), 'utf8')

/** A file that Envoy names is the one of that path here only where Envoy runs here. */
const luaFiles = (envoy: string | undefined): LuaFiles => {
  const isHere = envoy !== undefined && /^(127\.|localhost$|\[::1\]$)/.test(new URL(envoy).hostname)
  return {
    contextCache: packageFile('deploy', 'envoy', 'context-cache.lua'),
    sessionNames: packageFile('deploy', 'envoy', 'session-names.lua'),
    read: (path) => {
      if (!isHere || !isAbsolute(path)) return undefined
      try {
        return readFileSync(path, 'utf8')
      } catch {
        return undefined
      }
    },
  }
}
