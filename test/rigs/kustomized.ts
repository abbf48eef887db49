import { readManifests } from "../../deploy/kubernetes-files.ts";

type Content = Readonly<Record<string, unknown>>;

/** The resources of the kustomize files of a folder, with the namespace and the image that kustomize writes into them. */
export function kustomized(folder: string, namespace: string, image: string): readonly Content[] {
  return readManifests()
    .filter(({ file, kind }) => file.startsWith(`${folder}/`) && kind !== "Namespace")
    .map(({ content }): Content => {
      const own = JSON.parse(JSON.stringify(content).replaceAll('"image":"berth"', `"image":"${image}"`)) as Content;
      return { ...own, metadata: { ...(own["metadata"] as object), namespace } };
    });
}

/** Resources by their kind and name. */
export function byKindAndName(contents: readonly Content[]): ReadonlyMap<string, Content> {
  return new Map(
    contents.map((content) => [
      `${content["kind"]} ${(content["metadata"] as { readonly name: string }).name}`,
      content,
    ]),
  );
}
