import { randomUUID } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { createRedisSlotLedger } from '../../../src/kvcache/slots/redis/redis-slot-ledger.ts'
import type { RedisConnectionOptions } from '../../../src/redis/create-redis-connection.ts'
import type { SessionKey } from '../../../src/sessions/session-record.ts'
import { documentedRights } from '../../support/documented-rights.ts'
import { eventually } from '../../support/eventually.ts'
import { useTestRedis } from '../../support/use-test-redis.ts'

const redis = useTestRedis()

/** A gateway process: its ledger, and the pods at which slots were released as far as it was told. */
const startProcess = async (options: Partial<RedisConnectionOptions>) => {
  const ledger = createRedisSlotLedger(await redis().connect(options))
  const told: string[] = []
  ledger.onRelease((pod) => told.push(pod))
  const place = { slot: 0, turnId: 'turn' }
  const slots = [{ id: 0, idle: true }]
  const request = { ...place, session: 'alice' as SessionKey, leaseMs: 1_000, artefactId: undefined, mayWait: false }
  return {
    told,
    releaseAt: async (pod: string): Promise<void> => {
      expect(await ledger.claim({ ...request, pod, slots })).toMatchObject({ kind: 'claimed' })
      await ledger.release({ ...place, pod })
    },
  }
}

const prefix = () => `ctx:${randomUUID()}:`

test('each of two processes is told once of every release, its own included', async () => {
  const keyPrefix = prefix()
  const [first, second] = [await startProcess({ keyPrefix }), await startProcess({ keyPrefix })]
  /** Each is told what the other released. Messages come in order: so by then it was told all before. */
  const meet = (a: string, b: string) =>
    eventually(async () => {
      await first.releaseAt(a)
      await second.releaseAt(b)
      return first.told.includes(b) && second.told.includes(a)
    })
  await meet('first-begins', 'second-begins')
  await first.releaseAt('pod-a')
  await second.releaseAt('pod-b')
  await meet('first-ends', 'second-ends')
  for (const { told } of [first, second])
    expect(told.filter((pod) => pod.startsWith('pod-')).sort()).toEqual(['pod-a', 'pod-b'])
})

test('processes of other key prefixes are not told', async () => {
  const keyPrefix = prefix()
  const [first, second, other] = await Promise.all([
    startProcess({ keyPrefix }),
    startProcess({ keyPrefix }),
    startProcess({ keyPrefix: prefix() }),
  ])
  await eventually(async () => {
    await first.releaseAt('pod-a')
    return second.told.length > 1
  })
  expect(other.told).toEqual([])
})

test('a process whose connection was lost is told again', async () => {
  const keyPrefix = prefix()
  const [first, second] = [await startProcess({ keyPrefix }), await startProcess({ keyPrefix })]
  const untilTold = (pod: string) =>
    eventually(async () => {
      await first.releaseAt(pod)
      return second.told.includes(pod)
    })
  await untilTold('pod-a')
  await redis().raw.client('KILL', 'TYPE', 'PUBSUB')
  await untilTold('pod-b')
})

test.each(['&ctx:*', '+publish', '+subscribe'])(
  'a user of Redis without %s releases slots, and knows of its own releases',
  async (right) => {
    const rights = documentedRights().filter((one) => one !== right)
    await redis().raw.acl('SETUSER', 'lacking', 'reset', ...rights)
    const url = redis().server.url.replace('redis://', 'redis://lacking:password@')
    const refusals: string[] = []
    const onMessagesRefused = ({ message }: Error): void => void refusals.push(message)
    const lacking = await startProcess({ url, keyPrefix: 'ctx:', onMessagesRefused })
    await lacking.releaseAt('pod-c')
    await lacking.releaseAt('pod-c')
    expect(lacking.told).toEqual(['pod-c', 'pod-c'])
    if (right !== '+publish') await eventually(() => expect(refusals).toEqual([expect.stringMatching(/NOPERM/)]))
  },
)
