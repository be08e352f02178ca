import { types } from 'node:util'
import type { RedisLocation } from '../../options/redis-location.ts'
import { urlsOfHosts } from '../../options/redis-url.ts'
import { openOneServer } from '../../redis/one-server.ts'
import { withinTime } from '../../redis/time-limit.ts'
import { sentenceOf } from '../../telemetry/sentence-of.ts'
import { type Known, known, unknown } from './known.ts'

/** Nodes of a Redis Cluster, as `host:port`, that refuse all commands while a slot is not served. */
export type FullCoverage = readonly string[]

const setting = 'cluster-require-full-coverage'
const timeoutMs = 5_000

/**
 * Asks each node that the location lists whether it needs all slots; those that do not say are left out, unless none
 * does. Where there is no cluster, there are no such nodes. No credentials are in what it says.
 */
export const askFullCoverage = async ({ url: hosts, topology, tls }: RedisLocation): Promise<Known<FullCoverage>> => {
  if (topology?.kind !== 'cluster') return known([])
  const answers = await Promise.all(urlsOfHosts(hosts).map((url) => askNode({ url, tls })))
  const told = answers.filter((answer) => answer.kind === 'known')
  return told.length > 0 ? known(told.flatMap(({ value }) => value)) : (answers[0] ?? unknown('no node is given'))
}

/** Not by the gateway's connection, which runs scripts: CONFIG cannot be called by one, and no other command tells. */
const askNode = async ({ url, tls }: RedisLocation): Promise<Known<FullCoverage>> => {
  const { host } = new URL(url)
  const limits = { commandTimeoutMs: timeoutMs, connectTimeoutMs: timeoutMs }
  let lostBy: Error | undefined
  const onLost = (_name: string, error: Error): void => {
    lostBy = error
  }
  const server = openOneServer({ url, tls, topology: { kind: 'server' } }, limits, { onLost })
  try {
    await server.connect()
    const answer = await withinTime(server.commands.config('GET', setting), timeoutMs)
    return known(Array.isArray(answer) && answer[1] === 'yes' ? [host] : [])
  } catch (error) {
    const isRefused = lostBy === undefined && types.isNativeError(error) && error.name === 'ReplyError'
    return unknown(
      isRefused
        ? `the user of the gateway may not run CONFIG: CONFIG GET ${setting} as an administrator should say no`
        : `Redis cannot be asked: ${sentenceOf(lostBy ?? error)}`,
    )
  } finally {
    server.disconnect()
  }
}
