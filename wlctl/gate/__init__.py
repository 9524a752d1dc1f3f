"""May it be done? Pure: the same policy and question always get the same answer, with its rule."""
