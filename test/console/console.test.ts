import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Locator, Page } from 'playwright-core'
import { call, model } from '../integration/support/client.ts'
import { create, prompt, unknownId } from '../integration/support/sessions.ts'
import { useStack } from '../integration/support/use-stack.ts'
import { eventually } from '../support/eventually.ts'
import { useBrowser, violations, type WatchedPage } from './use-browser.ts'

const stack = useStack({ env: { CTX_TENANT_LIMITS_MAX_SESSIONS: '50' } })
const openPage = useBrowser()

const views = ['Overview', 'Pods', 'Sessions', 'Tenants'] as const
type View = (typeof views)[number]
const hashes = { Overview: '', Pods: 'pods', Sessions: 'sessions', Tenants: 'tenants' } as const
const open = (view: View, options?: Parameters<typeof openPage>[1]): Promise<WatchedPage> =>
  openPage(`${stack.gateway().adminUrl}/console/#/${hashes[view]}`, options)

const keys = ['Bearer key-of-one-client', 'Bearer key-of-another-client'] as const
const secret = 'nobody-shall-read-this'
const body = {
  model,
  prompt: `${prompt(80)} ${secret}`,
  max_tokens: 4,
  stream: true,
  stream_options: { include_usage: true },
}

/** A session of this client's. */
const makeSession = async (authorization: string): Promise<string> => {
  const created = await create(stack, { body, headers: { authorization } })
  return created.headers.get('x-session-id') ?? ''
}
const turn = async (id: string, authorization: string): Promise<string> => {
  const headers = { authorization, 'x-session-id': id }
  const answer = await call(`${stack.url}/v1/completions`, { headers, body })
  return answer.headers.get('x-context-cache') ?? ''
}
/** One of which a turn has hit. */
const makeHit = async (authorization: string): Promise<string> => {
  const id = await makeSession(authorization)
  await eventually(async () => expect(await turn(id, authorization)).toMatch(/^hit/))
  return id
}

let ids: readonly string[] = []
beforeAll(async () => {
  ids = [await makeHit(keys[0]), await makeSession(keys[1]), await makeSession(keys[1])]
})

const tile = (page: Page, title: string): Locator =>
  page.locator('section.tile', { has: page.getByRole('heading', { name: title, exact: true }) })
const rows = (page: Page): Locator => page.locator('tbody tr')
const find = async (page: Page, id: string): Promise<void> => {
  await page.getByLabel('Session id').fill(id)
  await page.getByLabel('Session id').press('Enter')
}
const numberIn = async (place: Locator): Promise<number> =>
  Number(/[\d,.]+/.exec((await place.textContent()) ?? '')?.[0].replaceAll(',', ''))

describe('the overview', () => {
  test('tells how often KV was found, what that saved, and who named sessions', async () => {
    const { page, problems } = await open('Overview')
    await page.getByText('● Live').waitFor()
    expect(await page.getByText('No warnings').textContent()).toContain('The session store (memory) answers')
    expect(await numberIn(tile(page, 'Hit ratio').locator('.value'))).toBeGreaterThan(0)
    expect(await tile(page, 'Hit ratio').textContent()).toMatch(/On the GPU *[1-9]|In the store *[1-9]/)
    expect(await tile(page, 'Prefill saved').locator('.value').textContent()).toMatch(/\d.* m?s/)
    expect(await tile(page, 'TTFT with a hit').locator('.value').textContent()).toMatch(/\d.* m?s/)
    expect(await tile(page, 'Sessions').textContent()).toMatch(/3 now.*id[1-9]/)
    expect(await tile(page, 'Stored KV').textContent()).toMatch(/\d.*B/)
    expect(await tile(page, 'Removals that wait').locator('.value').textContent()).toBe('0')
    expect(await tile(page, 'Promises not kept').locator('.value').textContent()).toBe('0')
    expect(problems).toEqual([])
  })

  test('counts turns while it is open, and its charts have the same as tables', async () => {
    const { page, problems } = await open('Overview')
    const completed = tile(page, 'Turns per second').locator('dd').nth(2)
    const before = await numberIn(completed)
    await turn(ids[0] ?? '', keys[0])
    await eventually(async () => expect(await numberIn(completed)).toBeGreaterThan(before))
    const chart = page.locator('figure', { has: page.getByRole('heading', { name: 'Where KV was found' }) })
    await eventually(async () => expect(await chart.locator('canvas').isVisible()).toBe(true))
    await chart.getByText('Values per minute').click()
    await eventually(async () => expect(await numberIn(chart.locator('tbody td').first())).toBeGreaterThan(0))
    expect(await chart.getByRole('img').getAttribute('aria-label')).toMatch(/GPU [1-9]/)
    expect(problems).toEqual([])
  })
})

test('the pods are there with their health, load and sessions', async () => {
  const { page, problems } = await open('Pods')
  await rows(page).nth(1).waitFor()
  expect(await page.locator('caption').textContent()).toBe('Pool default connector llamacpp-slots, 2 of 2 pods ready')
  const texts = await rows(page).allTextContents()
  for (const { address } of stack.pods) expect(texts.join('\n')).toContain(address)
  expect(texts).toEqual(Array.from({ length: 2 }, () => expect.stringContaining('ready')))
  const sessionsAt = (index: number) => numberIn(rows(page).nth(index).locator('td').nth(1))
  await eventually(async () => expect((await sessionsAt(0)) + (await sessionsAt(1))).toBe(3))
  expect(problems).toEqual([])
})

describe('the sessions', () => {
  test('are listed without ids, and filtered by model and tenant', async () => {
    const { page, problems, seen } = await open('Sessions')
    await eventually(async () => expect(await rows(page).count()).toBe(3))
    await page.getByLabel('Model').selectOption(model)
    await eventually(async () => expect(await rows(page).count()).toBe(3))
    // Whose row has two others like it is the tenant with two sessions.
    const tenants = await page.getByRole('button', { name: /…$/ }).allTextContents()
    const twice = tenants.find((tenant) => tenants.filter((other) => other === tenant).length === 2) ?? ''
    await page.getByRole('button', { name: twice }).first().click()
    await eventually(async () => expect(await rows(page).count()).toBe(2))
    expect(await page.getByLabel("Tenant's digest").inputValue()).toMatch(/^[\w-]{22}$/)
    await page.getByLabel("Tenant's digest").fill('x'.repeat(22))
    // What is typed stays while the page follows the gateway.
    await page.evaluate(
      () =>
        new Promise((resolve) => {
          const events = new EventSource(new URL('../api/events', location.href))
          let count = 0
          events.addEventListener('pods', () => {
            count += 1
            if (count < 3) return
            events.close()
            resolve(count)
          })
        }),
    )
    expect(await page.getByLabel("Tenant's digest").inputValue()).toBe('x'.repeat(22))
    await page.keyboard.press('Enter')
    await page.getByText('No session is of this model and tenant.').waitFor()
    for (const id of ids) expect(await seen()).not.toContain(id.slice(4))
    expect(problems).toEqual([])
  })

  test('one session is shown to whoever has its id, with its life, and the id stays out of document and address', async () => {
    const { page, problems, seen } = await open('Sessions')
    await find(page, ids[0] ?? '')
    const events = page.locator('.timeline > li')
    await events.first().waitFor()
    expect(await events.last().textContent()).toContain('Created')
    expect(await events.filter({ hasText: 'hit' }).first().textContent()).toMatch(
      /Turn hit (on the GPU|in the store) *at 127.*prompt .*tokens.*reused .*offload .*hit; tier=/,
    )
    const before = await events.count()
    await turn(ids[0] ?? '', keys[0])
    await eventually(async () => expect(await events.count()).toBeGreaterThan(before))
    expect(await page.getByLabel('Session id').inputValue()).toBe('')
    expect(await seen()).not.toContain(ids[0]?.slice(4))
    await page.getByRole('button', { name: 'Back to all sessions' }).click()
    await rows(page).first().waitFor()
    expect(problems).toEqual([])
  })

  test.each([unknownId, 'ctx_', '../overview', '"><img src=x>'])('the id %s is unknown', async (id) => {
    const { page } = await open('Sessions')
    await find(page, id)
    await eventually(async () =>
      expect(await page.getByRole('alert').first().textContent()).toContain('No live session'),
    )
  })

  test('a session is deleted once that is confirmed', async () => {
    const id = await makeSession(keys[0])
    const { page, problems } = await open('Sessions')
    await find(page, id)
    await page.getByRole('button', { name: 'Delete session' }).click()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('button', { name: 'Delete session' }).click()
    expect(await violations(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText(/Session .* is deleted/).waitFor()
    expect((await call(`${stack.gateway().adminUrl}/api/sessions/${id}`)).status).toBe(404)
    expect(problems).toEqual([])
  })
})

describe('the tenants', () => {
  test('are listed with what they use, and each is shown with its limits', async () => {
    const { page, problems } = await open('Tenants')
    await eventually(async () => expect(await rows(page).count()).toBe(2))
    const two = rows(page).filter({ has: page.locator('td:nth-of-type(1)', { hasText: /^2$/ }) })
    const digest = (await two.getByRole('button').textContent()) ?? ''
    await two.getByRole('button').click()
    await page.getByRole('heading', { name: `Tenant ${digest}` }).waitFor()
    const facts = page.locator('.facts')
    await eventually(async () =>
      expect(await facts.first().textContent()).toMatch(
        /^Sessions2 of at most 50Of these named0Stored KV[\d.]+ \w*B, no limitTurns at a timeno limit$/,
      ),
    )
    await page.getByRole('button', { name: 'Back to all tenants' }).click()
    await page.getByLabel("Tenant's digest").fill('too short')
    await page.keyboard.press('Enter')
    await page.getByText('A digest has 22 characters').waitFor()
    await page.getByLabel("Tenant's digest").fill('x'.repeat(22))
    await page.keyboard.press('Enter')
    await eventually(async () => expect(await facts.first().textContent()).toMatch(/^Sessions0 of at most 50/))
    expect(problems).toEqual([])
  })

  test('one is erased once that is confirmed', async () => {
    const key = 'Bearer key-of-a-third-client'
    for (let made = 0; made < 3; made += 1) await makeSession(key)
    const { page, problems } = await open('Tenants')
    const three = rows(page).filter({ has: page.locator('td:nth-of-type(1)', { hasText: /^3$/ }) })
    await three.getByRole('button').click()
    await page.getByRole('button', { name: 'Erase tenant' }).click()
    await page.keyboard.press('Escape')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('button', { name: 'Erase tenant' }).click()
    expect(await violations(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Erase', exact: true }).click()
    await page.getByText(/Tenant .* is erased: sessions 3, 0 cached answers/).waitFor()
    await eventually(async () => expect(await rows(page).count()).toBe(2))
    expect((await call(`${stack.url}/v1/context`, { headers: { authorization: key } })).body).toMatchObject({
      data: [],
    })
    expect(problems).toEqual([])
  })
})

describe.each([
  { colorScheme: 'light', width: 360 },
  { colorScheme: 'dark', width: 1280 },
] as const)('$colorScheme, $width pixels wide', ({ colorScheme, width }) => {
  test('no view has a barrier, or is wider than the screen, or shows a secret', async () => {
    const { page, problems, seen } = await open('Overview', { colorScheme, viewport: { width, height: 800 } })
    const check = async (): Promise<void> => {
      expect(await violations(page)).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
      for (const hidden of [secret, 'word17', ...keys.map((key) => key.slice(7)), ...ids.map((id) => id.slice(4))])
        expect(await seen()).not.toContain(hidden)
    }
    await page.getByText('● Live').waitFor()
    for (const view of views) {
      await page.getByRole('link', { name: view }).click()
      await page.getByRole('heading', { name: view, exact: true, level: 1 }).waitFor()
      if (view !== 'Overview') await rows(page).first().waitFor()
      await check()
    }
    await rows(page).getByRole('button').first().click()
    await page.locator('.facts').first().waitFor()
    await check()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await find(page, ids[0] ?? '')
    await page.locator('.timeline > li').first().waitFor()
    await check()
    expect(problems).toEqual([])
  })
})

test.each(views)('the keyboard reaches everything of %s, and shows where it is', async (view) => {
  const { page, problems } = await open(view)
  await page.getByText('● Live').waitFor()
  if (view !== 'Overview') await rows(page).first().waitFor()
  const usable = page.locator('a[href], button, input, select, summary')
  const expected = await usable.count()
  for (let step = 0; step < expected; step += 1) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate((index) => {
      const active = document.activeElement
      const all = document.querySelectorAll('a[href], button, input, select, summary')
      return { isNext: all[index] === active, outline: active === null ? '' : getComputedStyle(active).outlineStyle }
    }, step)
    expect(focused).toEqual({ isNext: true, outline: 'solid' })
  }
  expect(problems).toEqual([])
})
