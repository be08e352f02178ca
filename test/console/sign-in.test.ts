import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { Page } from 'playwright-core'
import { type RunningGateway, startGateway } from '../../playground/start-gateway.ts'
import { createPrefixProxy, type PrefixProxy } from '../support/prefix-proxy.ts'
import { useBrowser, violations } from './use-browser.ts'

const token = 'the token of the operators of this gateway'.replaceAll(' ', '-')
const openPage = useBrowser()
let gateway: RunningGateway
let proxy: PrefixProxy
beforeAll(async () => {
  gateway = await startGateway({
    env: {
      PATH: process.env['PATH'],
      CTX_TENANT_SECRET: 'a secret of the integration tests that is long enough',
      CTX_LISTEN_ADMIN_TOKEN: token,
      CONNECTOR: 'none',
      PODS: '127.0.0.1:1',
    },
  })
  proxy = await createPrefixProxy(gateway.adminUrl)
  await proxy.start()
})
afterAll(async () => {
  await proxy.stop()
  await gateway.child.stop()
})

const signIn = async (page: Page, presented: string): Promise<void> => {
  await page.getByLabel('Token').fill(presented)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** What the browser says by itself of answers that refuse. */
const isRefusal = (problem: string): boolean => problem.includes('the server responded with a status of 401')

test('behind a prefix, a token opens the console, a wrong one does not, and signing out closes it', async () => {
  // Leads to the page, which would not find its files without the slash.
  const { page, problems, seen } = await openPage(`${proxy.url}/console`)
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(page.url()).toBe(`${proxy.url}/console/`)
  expect(await violations(page)).toEqual([])

  await signIn(page, 'a-wrong-token-that-is-long-enough')
  await page.getByRole('alert').filter({ hasText: 'This is not the token' }).waitFor()
  expect(await page.getByRole('link', { name: 'Sessions' }).count()).toBe(0)

  await signIn(page, token)
  await page.getByText('● Live').waitFor()
  await page.getByRole('link', { name: 'Sessions' }).click()
  await page.getByText('No sessions.').waitFor()
  await page.getByRole('link', { name: 'Pods' }).click()
  await page.getByText('not ready').waitFor()
  expect(await violations(page)).toEqual([])

  await page.reload()
  await page.getByText('● Live').waitFor()
  expect(await seen()).not.toContain(token)
  const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]))
  expect(stored).not.toContain(token)

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  expect(problems.filter((problem) => !isRefusal(problem))).toEqual([])
})

test('warnings stand on top, in words', async () => {
  const { page } = await openPage(`${proxy.url}/console/`)
  await signIn(page, token)
  const warnings = page.getByRole('region', { name: /warning/ })
  await warnings.getByText('127.0.0.1:1').waitFor()
  expect(await warnings.textContent()).toContain('engine_unavailable')
  expect(await violations(page)).toEqual([])
})

test('a lost gateway is told, and the console goes on when it is back', async () => {
  const { page } = await openPage(`${proxy.url}/console/`)
  await signIn(page, token)
  await page.getByText('● Live').waitFor()
  await proxy.stop()
  await page.getByText('Reconnecting').waitFor()
  expect(await violations(page)).toEqual([])
  await proxy.start()
  await page.getByText('● Live').waitFor()
})

test('a page of another origin can neither sign in, nor change anything, nor frame the console', async () => {
  const post = (headers: Record<string, string>) =>
    fetch(`${proxy.url}/api/session`, { method: 'POST', headers, body: JSON.stringify({ token }) })
  const json = { 'content-type': 'application/json' }
  expect((await post(json)).status).toBe(403)
  const asPage = { ...json, 'x-requested-with': 'context-cache' }
  expect((await post({ ...asPage, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  const preflight = await fetch(`${proxy.url}/api/session`, {
    method: 'OPTIONS',
    headers: { origin: 'http://other.example' },
  })
  expect(preflight.headers.get('access-control-allow-origin')).toBeNull()
  const { headers } = await fetch(`${proxy.url}/console/`)
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect((await post(asPage)).headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Strict/)
})
