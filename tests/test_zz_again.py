import time
from tests.project import Project
from tests.conftest import *
from framework.engine.ahead import look_ahead
def test_it(project):
    project.make_topic(); project.send_good(3); project.run()
    for _ in range(6):
        project.delete_topic()
        (gone,) = look_ahead(project.plan, project.plan.pipelines)
        print([e.code for e in gone.refused], [str(e) for e in gone.unseen])
        try:
            project.run()
        except Exception as e: print("   ", e)
        project.make_topic()
        t = time.monotonic()
        (again,) = look_ahead(project.plan, project.plan.pipelines)
        print("  again", [e.code for e in again.refused], [str(e) for e in again.unseen], time.monotonic() - t)
        time.sleep(.3)
        (again,) = look_ahead(project.plan, project.plan.pipelines)
        print("  later", [e.code for e in again.refused], [str(e) for e in again.unseen])
