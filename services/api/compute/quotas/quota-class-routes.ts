import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import type { QuotaDeps } from "./quota-deps.ts";
import { QuotaClassAnswer, readLimits, UpdateQuotaClassBody } from "./quota-schemas.ts";
import { changeableOfClasses, pickResources, resourcesOfClasses } from "./quota-view.ts";

const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 255 }) });

/** `/os-quota-class-sets/{class}`, for admins. The class `default` replaces the defaults of every project; other classes are only kept. */
export function registerQuotaClassRoutes(http: Http, { store, limits }: Pick<QuotaDeps, "store" | "limits">): void {
  const shown = async (className: string, minor: number) => {
    const found = { ...limits.defaults, ...(await store.classLimits(className)) };
    return pickResources(resourcesOfClasses(minor), (resource) => found[resource]);
  };

  http.get(
    "/os-quota-class-sets/:id",
    {
      config: { rule: "os-quota-class-sets:show" },
      schema: { params: IdParams, response: { 200: QuotaClassAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      return { quota_class_set: { id: request.params.id, ...(await shown(request.params.id, call.minor)) } };
    },
  );

  http.put(
    "/os-quota-class-sets/:id",
    {
      config: { rule: "os-quota-class-sets:update" },
      schema: { params: IdParams, body: UpdateQuotaClassBody, response: { 200: QuotaClassAnswer } },
    },
    async (request) => {
      const call = callOf(request);
      const asked = request.body.quota_class_set as Readonly<Record<string, unknown>>;
      await store.setClassLimits(request.params.id, readLimits(asked, changeableOfClasses(call.minor)));
      limits.forget(null);
      return { quota_class_set: await shown(request.params.id, call.minor) };
    },
  );
}
