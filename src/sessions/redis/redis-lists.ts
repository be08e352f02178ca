import { nameOfTenant, type SessionDirectory } from '../session-directory.ts'
import type { SessionKey, TenantKey } from '../session-record.ts'
import type { SessionStore, WholeSession } from '../session-store.ts'
import type { Partition, Partitions } from './partitions.ts'
import { readAll } from './session-script-runner.ts'
import { tenantIn } from './session-text.ts'
import { toWholeSession } from './store-replies.ts'
import { readTenantTotals } from './totals.ts'

/** A session's place in its tenant's list: the time of its creation in 13 digits, and its name. */
interface Place {
  readonly partition: Partition
  readonly place: string
}

interface Listed {
  readonly place: string
  readonly record: WholeSession
}

/** A tenant's list, and how a snapshot of a session in it is read. */
interface TenantList {
  readonly name: string
  readonly read: (snapshot: unknown) => WholeSession
}

/** Lists of sessions, each merged from those of all partitions. */
export const createRedisLists = (partitions: Partitions) => {
  /** The newest places of a tenant's list, from behind `after` on. */
  const placesAfter = async ({ name }: TenantList, after: string, limit: number): Promise<readonly Place[]> => {
    const parts = await Promise.all(
      (await partitions.all()).map(async (partition) => {
        const { detail } = await partition.run('listed', [name, after, limit])
        return readAll(detail, (place): Place => ({ partition, place: String(place) }))
      }),
    )
    return parts
      .flat()
      .sort((a, b) => (a.place < b.place ? 1 : -1))
      .slice(0, limit)
  }

  /** The sessions of these places that still live, in their order. */
  const readPlaces = async ({ name, read }: TenantList, places: readonly Place[]): Promise<readonly Listed[]> => {
    const found = new Map<string, WholeSession>()
    await Promise.all(
      [...Map.groupBy(places, ({ partition }) => partition)].map(async ([partition, some]) => {
        const { detail } = await partition.run('read-listed', [name, ...some.map(({ place }) => place)])
        const snapshots = readAll(detail, (snapshot) => snapshot)
        for (const [index, { place }] of some.entries()) {
          const snapshot = snapshots[index]
          if (Array.isArray(snapshot)) found.set(place, read(snapshot))
        }
      }),
    )
    return places.flatMap(({ place }) => {
      const record = found.get(place)
      return record === undefined ? [] : [{ place, record }]
    })
  }

  const listFrom = async (list: TenantList, from: string, limit: number) => {
    const listed: Listed[] = []
    for (let after = from; ; ) {
      const wanted = limit + 1 - listed.length
      const places = await placesAfter(list, after, wanted)
      listed.push(...(await readPlaces(list, places)))
      after = places.at(-1)?.place ?? after
      // Those that had ended made room for others.
      if (listed.length <= limit && places.length === wanted) continue
      const page = listed.slice(0, limit)
      return { records: page.map(({ record }) => record), hasMore: listed.length > limit, after: page.at(-1)?.place }
    }
  }

  return {
    async list({ tenant, limit, after }) {
      const from = after === undefined ? '' : await placeOf(partitions, after, tenant)
      const read = (snapshot: unknown): WholeSession => toWholeSession(snapshot, tenant)
      const { records, hasMore } = await listFrom({ name: nameOfTenant(tenant), read }, from, limit)
      return { records, hasMore }
    },

    async find(key) {
      const { outcome, detail } = await (await partitions.of(key)).run('find', [key])
      return outcome === 'found' ? readForOperator(detail) : undefined
    },

    async page({ tenant, limit, after = '' }) {
      if (tenant === undefined) return pageOfAll(partitions, limit, after)
      const from = /^\d{13}[\w-]{22}$/.test(after) ? after : ''
      const page = await listFrom({ name: tenant, read: readForOperator }, from, limit)
      return { records: page.records, next: page.hasMore ? page.after : undefined }
    },

    async countNamed(tenant) {
      return (await readTenantTotals(partitions, tenant)).named
    },
  } satisfies Partial<SessionStore & SessionDirectory>
}

const readForOperator = (snapshot: unknown): WholeSession => toWholeSession(snapshot, tenantIn(snapshot))

const placeOf = async (partitions: Partitions, key: SessionKey, tenant: TenantKey): Promise<string> =>
  String((await (await partitions.of(key)).run('place', [key, tenant])).detail)

/** One partition after the other. `after`: the partition's number and the place in it. */
const pageOfAll = async (partitions: Partitions, limit: number, after: string) => {
  const [, from = '0', at = '0'] = /^(\d{1,4})\.(\d{1,15})$/.exec(after) ?? []
  const all = await partitions.all()
  const records: WholeSession[] = []
  let [number, place] = [Number(from), Number(at)]
  for (let partition = all[number]; partition !== undefined; partition = all[number]) {
    const { outcome, detail } = await partition.run('page', [place, limit - records.length])
    const [next, page] = readAll(detail, (item) => item)
    records.push(...readAll(page, readForOperator))
    ;[number, place] = outcome === 'more' ? [number, Number(next)] : [number + 1, 0]
    if (records.length >= limit || (outcome === 'more' && records.length > 0)) break
  }
  return { records, next: number < all.length ? `${number}.${place}` : undefined }
}
