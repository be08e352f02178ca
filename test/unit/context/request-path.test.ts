import { describe, expect, test } from '@jest/globals'
import { parseRequestPath } from '../../../src/context/request-path.ts'

const id = `ctx_${'a'.repeat(32)}`

describe('parseRequestPath', () => {
  test.each([
    { path: '/v1/completions', api: 'completions' },
    { path: '/v1/chat/completions', api: 'chat' },
    { path: '/v1/responses', api: 'responses' },
    { path: '/v1/responses?stream=true', api: 'responses' },
    { path: '/v1/completions?', api: 'completions' },
  ])('$path is inference', ({ path, api }) => {
    expect(parseRequestPath(path)).toEqual({ kind: 'inference', api })
  })

  test.each([
    { path: '/v1/context', query: '' },
    { path: '/v1/context?', query: '' },
    { path: '/v1/context?limit=5&after=x', query: 'limit=5&after=x' },
    { path: '/v1/context?a=/v1/responses?b', query: 'a=%2Fv1%2Fresponses%3Fb' },
  ])('$path is all contexts', ({ path, query }) => {
    const parsed = parseRequestPath(path)

    expect(parsed).toMatchObject({ kind: 'contexts' })
    expect(String('query' in parsed ? parsed.query : undefined)).toBe(query)
  })

  test.each([
    { path: `/v1/context/${id}`, found: id },
    { path: `/v1/context/${id}?x=/y`, found: id },
    { path: '/v1/context/..%2f..', found: '..%2f..' },
    { path: '/v1/context/%00', found: '%00' },
    { path: '/v1/context/%', found: '%' },
    { path: '/v1/context/__proto__', found: '__proto__' },
  ])('$path is one context, its id left as it stands', ({ path, found }) => {
    expect(parseRequestPath(path)).toEqual({ kind: 'context', id: found })
  })

  test.each([
    '',
    '/',
    '*',
    '/v1',
    '/v1/context/',
    `/v1/context/${id}/`,
    `/v1/context/${id}/kv`,
    '/v1/contexts',
    '/v1/contextual',
    '/V1/context',
    '/v1//context',
    '/v1/context/../completions',
    '/v1/completions/',
    '/v1/chat',
    '/v1/models',
    '/v1/%63ontext',
    '/constructor',
    'http://engine/v1/context',
  ])('"%s" is something else', (path) => {
    expect(parseRequestPath(path)).toEqual({ kind: 'other' })
  })
})
