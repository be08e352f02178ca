import { describe, expect, test } from '@jest/globals'
import { type ContextGateway, createContextGateway } from '../../support/context-gateway.ts'
import { answerBody, rejection } from '../../support/decisions.ts'

interface Page {
  readonly data: readonly { readonly id: string }[]
  readonly first_id: string | null
  readonly last_id: string | null
  readonly has_more: boolean
}

const list = async (gateway: ContextGateway, query: string, as = 'key-a') =>
  answerBody(await gateway.send({ method: 'GET', path: `/v1/context${query}`, as })) as Page

const createMany = async (gateway: ContextGateway, count: number): Promise<readonly string[]> => {
  const ids: string[] = []
  for (let made = 0; made < count; made += 1) {
    ids.unshift((await gateway.create()).id)
    gateway.advance(1)
  }
  return ids
}

describe('GET /v1/context', () => {
  test('is empty for a tenant without sessions', async () => {
    const gateway = createContextGateway()
    await gateway.create()

    expect(await list(gateway, '', 'key-b')).toEqual({
      object: 'list',
      data: [],
      first_id: null,
      last_id: null,
      has_more: false,
    })
  })

  test('returns 20 sessions by default, and up to 100 with limit', async () => {
    const gateway = createContextGateway()
    await createMany(gateway, 101)

    const pages = [await list(gateway, ''), await list(gateway, '?limit=100')]

    expect(pages.map(({ data, has_more }) => [data.length, has_more])).toEqual([
      [20, true],
      [100, true],
    ])
  })

  test('shows each session as GET shows it', async () => {
    const gateway = createContextGateway()
    const { id } = await gateway.create()

    expect((await list(gateway, '')).data).toEqual([await gateway.view(id)])
  })

  test.each([
    { query: '?limit=0', param: 'limit' },
    { query: '?limit=101', param: 'limit' },
    { query: '?limit=1000', param: 'limit' },
    { query: '?limit=-1', param: 'limit' },
    { query: '?limit=1.5', param: 'limit' },
    { query: '?limit=1e1', param: 'limit' },
    { query: '?limit=', param: 'limit' },
    { query: '?limit=ten', param: 'limit' },
    { query: '?limit=%31%20', param: 'limit' },
    { query: '?after=', param: 'after' },
    { query: '?after=session-01', param: 'after' },
    { query: '?after=..%2f..', param: 'after' },
  ])('refuses the page $query', async ({ query, param }) => {
    const decision = await createContextGateway().send({ method: 'GET', path: `/v1/context${query}` })

    expect(rejection(decision)).toMatchObject({ code: 'invalid_page', status: 400, param })
  })

  test.each(['', '?', '?order=asc', '?limit=%32', '?limit=5&limit=x'])('accepts the page "%s"', async (query) => {
    await expect(list(createContextGateway(), query)).resolves.toMatchObject({ object: 'list' })
  })
})
