import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { launchBrowser } from './launch-browser.ts'

/** A page of the browser, with what must not happen on it. */
export interface WatchedPage {
  readonly page: Page
  /** Errors of scripts, what the browser's console says, and requests to other origins. */
  readonly problems: readonly string[]
  /** What the API has answered, the document as it is now, and the page's address. */
  readonly seen: () => Promise<string>
}

/** Opens a page at this URL. */
export type OpenPage = (url: string, options?: BrowserContextOptions) => Promise<WatchedPage>

/** A browser for the tests of a file. It ends with them, and with it every page. */
export const useBrowser = (): OpenPage => {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterEach(async () => {
    await Promise.all(browser?.contexts().map((context) => context.close()) ?? [])
  })
  afterAll(() => browser?.close())
  return async (url, options) => {
    if (browser === undefined) throw new Error('the browser is not started yet')
    const context = await browser.newContext({
      locale: 'en-GB',
      viewport: { width: 1280, height: 900 },
      ...options,
    })
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    const watched = watch(page, new URL(url).origin)
    await page.goto(url)
    return watched
  }
}

const watch = (page: Page, origin: string): WatchedPage => {
  const problems: string[] = []
  const bodies: Promise<string>[] = []
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('request', (request) => {
    const { origin: asked, protocol } = new URL(request.url())
    if (asked !== origin && protocol !== 'data:') problems.push(`a request to ${asked}`)
  })
  page.on('response', (response) => {
    const isStream = response.headers()['content-type']?.startsWith('text/event-stream') === true
    if (response.url().includes('/api/') && !isStream) bodies.push(response.text().catch(() => ''))
  })
  return {
    page,
    problems,
    seen: async () => [...(await Promise.all(bodies)), page.url(), await page.content()].join('\n'),
  }
}

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** What axe-core finds wrong with the page as it is now. */
export const violations = async (page: Page): Promise<readonly string[]> => {
  await page.evaluate(await readFile(axePath, 'utf8'))
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      readonly axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
    }
    const found = await axe.run()
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(', ')}`)
  })
}
