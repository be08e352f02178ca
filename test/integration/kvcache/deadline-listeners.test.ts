import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { packageRoot } from '../../../playground/paths.ts'

const module = pathToFileURL(join(packageRoot(), 'dist/src/async/deadline.js')).href
const script = `
  import { startDeadline } from '${module}'
  const deadline = startDeadline(undefined, 60_000)
  for (let count = 0; count < 100; count += 1) deadline.signal.addEventListener('abort', () => {})
  deadline.end()
  console.log('listened')
`

// Node warns in the process itself, out of a test's reach.
test('hundred listeners on one deadline cause no warning', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])
  expect({ stdout, stderr }).toEqual({ stdout: 'listened\n', stderr: '' })
})
