import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from '@jest/globals'
import { readConsoleFiles } from '../../../src/admin/console-files.ts'
import { useFolder } from '../../support/use-folder.ts'

const folder = useFolder()
beforeEach(async () => {
  await mkdir(join(folder(), 'views'))
  await writeFile(join(folder(), 'index.html'), '<p>page</p>')
  await writeFile(join(folder(), 'views/pods.js'), 'export {}')
  await writeFile(join(folder(), 'views/pods.tsx'), 'source')
  await writeFile(join(folder(), 'tsconfig.json'), '{}')
})

test('the page and its files have their types, and headers that allow nothing from elsewhere', () => {
  const files = readConsoleFiles(folder())
  expect(files('/console/')).toMatchObject({ status: 200, body: '<p>page</p>' })
  expect(files('/console/')).toEqual(files('/console/index.html'))
  const script = files('/console/views/pods.js')
  expect(script?.contentType).toBe('text/javascript; charset=utf-8')
  expect(script?.headers).toMatchObject({
    'content-security-policy': expect.stringMatching(/^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/),
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
  })
})

test('an unchanged file is not sent again', () => {
  const files = readConsoleFiles(folder())
  const etag = files('/console/')?.headers?.['etag']
  expect(files('/console/', etag)).toMatchObject({ status: 304, body: '' })
  expect(files('/console/views/pods.js', etag)).toMatchObject({ status: 200 })
})

test('the path without a slash leads to the page, below any prefix', () => {
  expect(readConsoleFiles(folder())('/console')).toMatchObject({ status: 308, headers: { location: 'console/' } })
})

test.each([
  '/console/views/pods.tsx',
  '/console/tsconfig.json',
  '/console/views',
  '/console/../console-files.js',
  '/console/%2e%2e/console-files.js',
  '/console//index.html',
  '/console/constructor',
  '/consoles/',
])('%s is not there', (path) => expect(readConsoleFiles(folder())(path)).toBeUndefined())

test('without the folder there is no console', () => {
  const files = readConsoleFiles(join(folder(), 'none'))
  expect([files('/console'), files('/console/')]).toEqual([undefined, undefined])
})
